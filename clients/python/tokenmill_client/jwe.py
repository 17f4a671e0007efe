"""Compact JWE (RFC 7516) to a public key: RSA-OAEP-256 for RSA, ECDH-ES for P-256 and X25519, with A256GCM."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from .jws import PublicKey, encode, public_jwk

ENC = "A256GCM"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
_OAEP = padding.OAEP(mgf=padding.MGF1(SHA256()), algorithm=SHA256(), label=None)


def can_encrypt_to(public_key: PublicKey) -> bool:
    return isinstance(public_key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, x25519.X25519PublicKey))


def encrypt(plain: bytes, public_key: PublicKey, kid: str) -> str:
    """Encrypts bytes to a key. `kid`: the name by which the reader knows the key."""
    if isinstance(public_key, rsa.RSAPublicKey):
        key = os.urandom(_KEY_BYTES)
        return _sealed({"alg": "RSA-OAEP-256", "enc": ENC, "kid": kid}, public_key.encrypt(key, _OAEP), key, plain)
    ephemeral, secret = _agree(public_key)
    header = {"alg": "ECDH-ES", "enc": ENC, "kid": kid, "epk": public_jwk(ephemeral)}
    return _sealed(header, b"", _derived(secret), plain)


def _sealed(header: dict[str, Any], encrypted_key: bytes, key: bytes, plain: bytes) -> str:
    protected = encode(json.dumps(header, separators=(",", ":")).encode())
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plain, protected.encode("ascii"))
    parts = (encrypted_key, nonce, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])
    return ".".join([protected, *(encode(part) for part in parts)])


def _agree(public_key: PublicKey) -> tuple[PublicKey, bytes]:
    """A key for this message alone, and the secret that it has in common with the reader's."""
    if isinstance(public_key, x25519.X25519PublicKey):
        own = x25519.X25519PrivateKey.generate()
        return own.public_key(), own.exchange(public_key)
    if isinstance(public_key, ec.EllipticCurvePublicKey):
        own_ec = ec.generate_private_key(ec.SECP256R1())
        return own_ec.public_key(), own_ec.exchange(ec.ECDH(), public_key)
    raise TypeError("nothing can be encrypted to this key")


def _derived(secret: bytes) -> bytes:
    """RFC 7518 4.6.2: Concat KDF. One round of SHA-256 gives the 256 bits."""
    empty = (0).to_bytes(4, "big")
    algorithm = len(ENC).to_bytes(4, "big") + ENC.encode("ascii")
    bits = (8 * _KEY_BYTES).to_bytes(4, "big")
    return hashlib.sha256((1).to_bytes(4, "big") + secret + algorithm + empty + empty + bits).digest()
