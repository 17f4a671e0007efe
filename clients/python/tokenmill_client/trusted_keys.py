"""The installation's keys that a client trusts: those of its file, and those that a trusted key announced in a signed
statement. Announced keys are stored as these statements, beside the client's file, and verified again when they are read.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .jws import VerifyingKey, import_verifying, open_signed, thumbprint

_STATEMENT_TYP = "tokenmill-signing-key+jwt"
STATEMENT_CHARS_MAX = 4096

_log = logging.getLogger("tokenmill_client")


class TrustedKeys:
    def __init__(self, audience: str, keys: Iterable[VerifyingKey], file: Path | None) -> None:
        """`file`: where announced keys are stored; None: only in memory. Raises `ConfigError` for a file of another form."""
        self.audience = audience
        self.by_kid = {key.kid: key for key in keys}
        self._file = file
        self._learn(_read_statements(file))

    def opened(self, jws: object, typ: str) -> dict[str, Any] | None:
        """The claims of a statement that a trusted key signed for this installation; else None."""
        if not isinstance(jws, str) or len(jws) > STATEMENT_CHARS_MAX:
            return None
        claims = open_signed(jws, typ, self.by_kid)
        return claims if claims is not None and claims.get("aud") == self.audience else None

    def with_announced(self, statements: Iterable[object]) -> TrustedKeys:
        """These keys and those that the statements announce, not stored yet."""
        more = TrustedKeys(self.audience, self.by_kid.values(), None)
        more._learn(statements)
        return more

    def renew(self, statements: Iterable[object]) -> None:
        """Takes over the keys that these statements announce, and stores them if there is a file."""
        added = self._learn(statements)
        if not added or self._file is None:
            return
        try:
            _write_statements(self._file, [*_read_statements(self._file), *added])
        except (OSError, ConfigError) as error:
            # The process trusts the key all the same.
            _log.warning("an announced key of the installation was not stored in %s: %s", self._file, error)

    def _learn(self, statements: Iterable[object]) -> list[str]:
        """Adds what known keys announce, also by a chain of statements; never replaces a key. Returns what added a key."""
        added: list[str] = []
        left = [jws for jws in statements if isinstance(jws, str)]
        found = True
        while found:
            found = False
            for jws in list(left):
                key = self._announced(jws)
                if key is None:
                    continue
                left.remove(jws)
                found = True
                if key.kid not in self.by_kid:
                    self.by_kid[key.kid] = key
                    added.append(jws)
        return added

    def _announced(self, jws: str) -> VerifyingKey | None:
        claims = self.opened(jws, _STATEMENT_TYP)
        if claims is None or not isinstance(claims.get("jwk"), dict):
            return None
        try:
            key = import_verifying(claims["jwk"])
        except ConfigError:
            return None
        # A chosen kid could take the place of another key.
        return key if key.kid == thumbprint(key.public_key) else None


def _read_statements(file: Path | None) -> list[str]:
    if file is None or not file.exists():
        return []
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if set(content) == {"new_keys"} and all(isinstance(jws, str) for jws in content["new_keys"]):
            return list(content["new_keys"])
    except (OSError, ValueError, TypeError):
        pass
    raise ConfigError(
        f"{file} is not as this library writes it; take it from a backup, or remove it and use a new client file of the operator's"
    )


def _write_statements(file: Path, statements: list[str]) -> None:
    # `mkstemp` makes the file with mode 0600.
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump({"new_keys": list(dict.fromkeys(statements))}, out, indent=2)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
