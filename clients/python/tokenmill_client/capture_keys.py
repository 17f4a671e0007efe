"""Public capture keys, to which cards are encrypted. A key is believed only by a statement about it that the installation
signed, so nobody on the way can put another key in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .errors import ConfigError
from .jwe import can_encrypt_to
from .jws import PublicKey, import_public, thumbprint
from .trusted_keys import TrustedKeys

_STATEMENT_TYP = "tokenmill-capture-key+jwt"


@dataclass(frozen=True)
class CaptureKey:
    alias: str
    kid: str
    """The thumbprint (RFC 7638), by which workers know the key."""
    public_key: PublicKey
    until: float
    """Until when a client that fetches keys may take it over, in seconds since the epoch."""


def verified_key(alias: str, jwk: object, entity_id: str, trusted: TrustedKeys) -> CaptureKey:
    """Reads a public JWK that holds its statement. Raises `ConfigError` for a key that isn't proved to be the entity's."""
    if not isinstance(jwk, Mapping):
        raise ConfigError(f"the public key {alias} is not a JWK")
    public_key = _imported(alias, jwk)
    if not isinstance(jwk.get("statement"), str):
        raise ConfigError(
            f"the public key {alias} has no statement of the installation, so anybody may have written it; "
            "ask the operator for it anew"
        )
    stated = trusted.opened(jwk["statement"], _STATEMENT_TYP)
    if stated is None:
        raise ConfigError(
            f"no known key of the installation signed the statement about the public key {alias}; "
            "ask the operator for this file anew, and compare installation_keys"
        )
    kid = thumbprint(public_key)
    if [stated.get(name) for name in ("alias", "kid", "entity_id")] != [alias, kid, entity_id]:
        raise ConfigError(
            f"the public key given for {alias} is not the one that the installation signed: somebody may have put "
            "another in its place, so nothing is encrypted to it; ask the operator for it anew"
        )
    until = stated.get("until")
    return CaptureKey(alias, kid, public_key, float(until) if isinstance(until, (int, float)) else 0.0)


def newest_key(document: object, entity_id: str, trusted: TrustedKeys, now: float) -> CaptureKey:
    """The newest key of an answer of `GET /.well-known/capture-keys`; takes over the signing keys that it announces.

    `now`: seconds since the epoch. Raises `ConfigError` if a key isn't proved, or there is none: then nothing is taken.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("keys"), list):
        raise ConfigError("these are no capture keys as /.well-known/capture-keys answers them")
    jwks: list[Any] = document["keys"]
    announced = document.get("new_keys")
    statements: list[object] = announced if isinstance(announced, list) else []
    known = trusted.with_announced(statements)
    keys = [verified_key(_kid_of(jwk), jwk, entity_id, known) for jwk in jwks]
    if not keys:
        raise ConfigError(
            "the answer has no JWE capture key, so the former one stays in use; "
            f"ask for the keys of the entity {entity_id}"
        )
    for key in keys:
        if key.until < now:
            ended = datetime.fromtimestamp(key.until, timezone.utc).isoformat()
            raise ConfigError(f"the statement about the public key {key.alias} ended at {ended}; fetch the keys anew")
    trusted.renew(statements)
    return keys[0]


def _kid_of(jwk: object) -> str:
    kid = jwk.get("kid") if isinstance(jwk, Mapping) else None
    return str(kid)


def _imported(alias: str, jwk: Mapping[str, Any]) -> PublicKey:
    if jwk.get("kid", alias) != alias:
        raise ConfigError(f"the public key given for {alias} is another's")
    try:
        public_key = import_public(jwk)
    except ConfigError as error:
        raise ConfigError(f"the public key {alias}: {error}") from None
    if not can_encrypt_to(public_key):
        raise ConfigError(f"the public key {alias} is not RSA of 2048 to 4096 bits, P-256 or X25519")
    return public_key
