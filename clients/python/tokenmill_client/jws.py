"""JSON Web Keys (RFC 7517) and compact signatures (RFC 7515) with the four algorithms of tokenmill: EdDSA, ES256, PS256 and
RS256. The algorithm belongs to the key and is never taken from a message.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils, x25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .errors import ConfigError

Jwk = Mapping[str, Any]
PublicKey = Union[rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey, x25519.X25519PublicKey]
PrivateKey = Union[rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey]

PRIVATE_MEMBERS = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_RSA_BITS = range(2048, 4097)
_RSA_EXPONENT_MIN = 0x10001
_P256_BYTES = 32
# RFC 7518 3.5: the salt is as long as the digest.
_PSS = padding.PSS(mgf=padding.MGF1(SHA256()), salt_length=32)
_PADDINGS: Mapping[str, padding.AsymmetricPadding] = {"PS256": _PSS, "RS256": padding.PKCS1v15()}


@dataclass(frozen=True)
class VerifyingKey:
    kid: str
    alg: str
    public_key: PublicKey


@dataclass(frozen=True)
class SigningKey:
    kid: str
    alg: str
    private_key: PrivateKey


def encode(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """Raises `ValueError` for letters outside of the alphabet, and for a text that isn't the one of its bytes."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if encode(data) != text:
        raise ValueError("not canonical base64url")
    return data


def import_public(jwk: Jwk) -> PublicKey:
    """Raises `ConfigError` for anything but an RSA, P-256, Ed25519 or X25519 key, and for a private one."""
    if any(name in jwk for name in PRIVATE_MEMBERS):
        raise ConfigError("the JWK holds its private half")
    try:
        return _public_of(jwk)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError("not a public JWK") from None


def import_verifying(jwk: Jwk) -> VerifyingKey:
    """A key that verifies signatures. Its `kid` is the JWK's own, else its thumbprint. Raises `ConfigError`."""
    public_key = import_public(jwk)
    return VerifyingKey(_kid_of(jwk, public_key), _algorithm_of(jwk, public_key), public_key)


def import_signing(jwk: Jwk) -> SigningKey:
    """A private key that signs. Raises `ConfigError`, whose message never quotes the key."""
    public_jwk = {name: value for name, value in jwk.items() if name not in PRIVATE_MEMBERS}
    verifying = import_verifying(public_jwk)
    try:
        private_key = _private_of(jwk, verifying.public_key)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError("not a private JWK") from None
    return SigningKey(verifying.kid, verifying.alg, private_key)


def thumbprint(public_key: PublicKey) -> str:
    """RFC 7638: SHA-256 of the required members of the key, base64url."""
    text = json.dumps(public_jwk(public_key), sort_keys=True, separators=(",", ":"))
    return encode(hashlib.sha256(text.encode()).digest())


def public_jwk(public_key: PublicKey) -> dict[str, str]:
    """The required members of the key's type."""
    if isinstance(public_key, rsa.RSAPublicKey):
        rsa_numbers = public_key.public_numbers()
        return {"kty": "RSA", "e": encode(_bytes_of(rsa_numbers.e)), "n": encode(_bytes_of(rsa_numbers.n))}
    if isinstance(public_key, ec.EllipticCurvePublicKey):
        numbers = public_key.public_numbers()
        x, y = (encode(part.to_bytes(_P256_BYTES, "big")) for part in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
    curve = "Ed25519" if isinstance(public_key, ed25519.Ed25519PublicKey) else "X25519"
    return {"kty": "OKP", "crv": curve, "x": encode(public_key.public_bytes(Encoding.Raw, PublicFormat.Raw))}


def sign(key: SigningKey, typ: str, claims: Mapping[str, Any]) -> str:
    """A compact JWS of the claims."""
    header = {"alg": key.alg, "kid": key.kid, "typ": typ}
    signed = ".".join(encode(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    return f"{signed}.{encode(_signature(key, signed.encode('ascii')))}"


def open_signed(jws: str, typ: str, keys: Mapping[str, VerifyingKey]) -> dict[str, Any] | None:
    """The claims; None unless one of `keys` signed them with this `typ`."""
    try:
        head, payload, signature = jws.split(".")
        header = json.loads(decode(head))
        key = keys.get(header["kid"])
        if key is None or header != {"alg": key.alg, "kid": key.kid, "typ": typ}:
            return None
        _verify(key, decode(signature), f"{head}.{payload}".encode("ascii"))
        claims = json.loads(decode(payload))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return None
    return claims if isinstance(claims, dict) else None


def _signature(key: SigningKey, signed: bytes) -> bytes:
    private_key = key.private_key
    if isinstance(private_key, ed25519.Ed25519PrivateKey):
        return private_key.sign(signed)
    if isinstance(private_key, ec.EllipticCurvePrivateKey):
        # RFC 7518 3.4: the two integers one after the other, not their DER encoding.
        pair = utils.decode_dss_signature(private_key.sign(signed, ec.ECDSA(SHA256())))
        return b"".join(number.to_bytes(_P256_BYTES, "big") for number in pair)
    return private_key.sign(signed, _PADDINGS[key.alg], SHA256())


def _verify(key: VerifyingKey, signature: bytes, signed: bytes) -> None:
    public_key = key.public_key
    if isinstance(public_key, ed25519.Ed25519PublicKey):
        public_key.verify(signature, signed)
    elif isinstance(public_key, ec.EllipticCurvePublicKey):
        if len(signature) != 2 * _P256_BYTES:
            raise InvalidSignature
        first, second = signature[:_P256_BYTES], signature[_P256_BYTES:]
        der = utils.encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
        public_key.verify(der, signed, ec.ECDSA(SHA256()))
    elif isinstance(public_key, rsa.RSAPublicKey):
        public_key.verify(signature, signed, _PADDINGS[key.alg], SHA256())
    else:
        raise InvalidSignature


def _public_of(jwk: Jwk) -> PublicKey:
    kind = (jwk["kty"], jwk.get("crv"))
    if kind[0] == "RSA":
        key = rsa.RSAPublicNumbers(_number_of(jwk["e"]), _number_of(jwk["n"])).public_key()
        if key.key_size not in _RSA_BITS or _number_of(jwk["e"]) < _RSA_EXPONENT_MIN:
            raise ValueError("RSA of another size")
        return key
    if kind == ("EC", "P-256"):
        return ec.EllipticCurvePublicNumbers(_number_of(jwk["x"]), _number_of(jwk["y"]), ec.SECP256R1()).public_key()
    if kind == ("OKP", "Ed25519"):
        return ed25519.Ed25519PublicKey.from_public_bytes(decode(jwk["x"]))
    if kind == ("OKP", "X25519"):
        return x25519.X25519PublicKey.from_public_bytes(decode(jwk["x"]))
    raise ValueError("another type of key")


def _private_of(jwk: Jwk, public_key: PublicKey) -> PrivateKey:
    if isinstance(public_key, ed25519.Ed25519PublicKey):
        ed_key = ed25519.Ed25519PrivateKey.from_private_bytes(decode(jwk["d"]))
        if thumbprint(ed_key.public_key()) != thumbprint(public_key):
            raise ValueError("the halves of the key don't belong together")
        return ed_key
    secret = _number_of(jwk["d"])
    if isinstance(public_key, ec.EllipticCurvePublicKey):
        return ec.EllipticCurvePrivateNumbers(secret, public_key.public_numbers()).private_key()
    if not isinstance(public_key, rsa.RSAPublicKey):
        raise ValueError("not for signing")
    p, q, dp, dq, qi = (_number_of(jwk[name]) for name in ("p", "q", "dp", "dq", "qi"))
    return rsa.RSAPrivateNumbers(p, q, secret, dp, dq, qi, public_key.public_numbers()).private_key()


def _algorithm_of(jwk: Jwk, public_key: PublicKey) -> str:
    if jwk.get("use", "sig") != "sig":
        raise ConfigError("the JWK is not for signing (use)")
    if isinstance(public_key, ed25519.Ed25519PublicKey):
        possible = ["EdDSA"]
    elif isinstance(public_key, ec.EllipticCurvePublicKey):
        possible = ["ES256"]
    elif isinstance(public_key, rsa.RSAPublicKey):
        possible = ["PS256", "RS256"]
    else:
        raise ConfigError("a signing key is Ed25519, P-256 or RSA of 2048 to 4096 bits")
    alg = jwk.get("alg", possible[0] if len(possible) == 1 else None)
    if alg not in possible:
        raise ConfigError(f"the JWK must say alg {' or '.join(possible)}")
    return str(alg)


def _kid_of(jwk: Jwk, public_key: PublicKey) -> str:
    kid = jwk.get("kid") or thumbprint(public_key)
    if not isinstance(kid, str):
        raise ConfigError("kid is not a text")
    return kid


def _number_of(text: str) -> int:
    return int.from_bytes(decode(text), "big")


def _bytes_of(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
