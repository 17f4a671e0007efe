"""Who a request is of: Basic by the API key of the client's file, else a JWT that the client signs with its own key."""

from __future__ import annotations

import base64
import time

from .client_file import Credentials
from .jws import SigningKey, sign

# A JWT lists all roles: the caller has those that the client has.
ROLES = (
    "TOKEN_WRITE",
    "TOKEN_READ",
    "TOKEN_LIFECYCLE",
    "SCHEME_TOKEN",
    "LEDGER_WRITE",
    "REPORT_READ",
    "REPORT_REQUEST",
    "THREEDS",
    "ADMIN",
)
_LIFE_SECONDS = 300


def authorization_of(credentials: Credentials) -> str:
    """The value of `Authorization` for a request that is sent now."""
    signs_in = credentials.signs_in
    if isinstance(signs_in, SigningKey):
        now = int(time.time())
        claims = {
            "sub": credentials.user_id,
            "entity_id": credentials.entity_id,
            "roles": ROLES,
            "iat": now,
            "exp": now + _LIFE_SECONDS,
        }
        return f"Bearer {sign(signs_in, 'JWT', claims)}"
    pair = f"{credentials.user_id}:{signs_in}"
    return f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
