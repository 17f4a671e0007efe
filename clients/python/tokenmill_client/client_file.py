"""The client's file, which the operator makes with `tokenmill client add`: who the client is, how it signs in, and the
installation's public keys. It names other files in its folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Union

from .capture_keys import CaptureKey, verified_key
from .errors import ConfigError
from .jws import SigningKey, import_signing, import_verifying
from .trusted_keys import TrustedKeys


class _RequiredCard(TypedDict):
    cardNumber: Union[str, int]


class Card(_RequiredCard, total=False):
    """A card in clear, as `encrypted_card` holds it. The client adds `captureTime`, and refuses a `cvv`."""

    expiryMonth: Union[str, int]
    expiryYear: Union[str, int]
    startMonth: Union[str, int]
    startYear: Union[str, int]
    cardholderName: str
    sequenceNumber: Union[str, int]


class _RequiredCredentials(TypedDict):
    file: Mapping[str, Any]


class GivenCredentials(_RequiredCredentials, total=False):
    """The client's file and its keys, for programs that have them elsewhere than in files."""

    signing_key: Mapping[str, Any]
    """The private JWK; needed if the file has no `api_key`."""
    capture_key: Mapping[str, Any]
    """The public JWK that `capture_keys.jwe` of the file names."""


@dataclass(frozen=True)
class Credentials:
    user_id: str
    entity_id: str
    base_url: str
    token_scope: str | None
    signs_in: str | SigningKey
    """The API key, else the key that signs JWTs."""
    trusted: TrustedKeys
    capture_key: CaptureKey | None


def read_credentials(path: Path) -> Credentials:
    """Reads the file and every key that it names. Raises `ConfigError` that says which part is wrong."""

    def named(name: object) -> Mapping[str, Any]:
        if not isinstance(name, str):
            raise ConfigError(f"{path}: signing_key_file names no file; put the place of the client's private JWK there")
        return _read_object(path.parent / name, f": {path} names it; keep the files of a client together")

    new_keys = path.with_name(f"{path.name.removesuffix('.json')}.new-keys.json")
    return _credentials_in(str(path), _read_object(path, _OPERATORS), named, named, new_keys)


def take_credentials(given: GivenCredentials) -> Credentials:
    """As `read_credentials`. Keys that the installation announces are kept in memory only."""

    def signing_key(_: object) -> Mapping[str, Any]:
        key = given.get("signing_key")
        if key is None:
            raise ConfigError("credentials: `signing_key` is not set, and the file has no api_key")
        return key

    def capture_key(_: object) -> Mapping[str, Any] | None:
        return given.get("capture_key")

    return _credentials_in("credentials", given["file"], signing_key, capture_key, None)


def _credentials_in(
    where: str,
    file: Mapping[str, Any],
    signing_key: Callable[[object], Mapping[str, Any]],
    capture_key: Callable[[object], Mapping[str, Any] | None],
    new_keys: Path | None,
) -> Credentials:
    def text(name: str) -> str:
        value = file.get(name)
        if not isinstance(value, str) or value == "":
            raise ConfigError(f"{where}: {name} is not as a client's file has it")
        return value

    jwks = file.get("installation_keys")
    listed = jwks.get("keys") if isinstance(jwks, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(jwk, Mapping) for jwk in listed):
        raise ConfigError(f"{where}: installation_keys is not as a client's file has it")
    trusted = TrustedKeys(text("audience"), [import_verifying(jwk) for jwk in listed], new_keys)
    entity_id = text("entity_id")
    scope = file.get("token_scope")
    return Credentials(
        user_id=text("user_id"),
        entity_id=entity_id,
        base_url=text("base_url"),
        token_scope=None if scope is None else text("token_scope"),
        signs_in=text("api_key") if "api_key" in file else _own_key(where, file.get("signing_key_file"), signing_key),
        trusted=trusted,
        capture_key=_own_capture_key(file.get("capture_keys"), capture_key, entity_id, trusted),
    )


def _own_key(where: str, name: object, read: Callable[[object], Mapping[str, Any]]) -> SigningKey:
    jwk = read(name)
    try:
        return import_signing(jwk)
    except ConfigError as error:
        raise ConfigError(f"{where}: the signing key {name}: {error}") from None


def _own_capture_key(
    named: object,
    read: Callable[[object], Mapping[str, Any] | None],
    entity_id: str,
    trusted: TrustedKeys,
) -> CaptureKey | None:
    entry = named.get("jwe") if isinstance(named, Mapping) else None
    if not isinstance(entry, Mapping):
        return None
    jwk = read(entry.get("public_key_file"))
    return None if jwk is None else verified_key(str(entry.get("alias")), jwk, entity_id, trusted)


_OPERATORS = (
    ": name the file that the operator made with `tokenmill client add`; "
    "`tokenmill start` makes .tokenmill/dev-client.json"
)


def _read_object(path: Path, if_absent: str) -> Mapping[str, Any]:
    """`if_absent`: what to do if the file isn't there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there{if_absent}") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror})") from None
    except ValueError:
        # The parser's message isn't used: it would quote the file.
        raise ConfigError(f"{path} is not a JSON object") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object")
    return content
