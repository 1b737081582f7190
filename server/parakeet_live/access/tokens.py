"""Short-lived tokens for browsers: a web page must never hold a key, because everyone who opens it can read it."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

import jwt

ALGORITHM = "HS256"
SECRET_BYTES = 32


class TokenError(Exception):
    """The token is not valid; the message says why."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says."""

    key_id: str
    """The key it was made with: its limits count, and revoking it ends the token."""
    origin: str | None
    """The only web origin it may be used from; None for any allowed one."""


class TokenSigner:
    """Makes and reads tokens: JSON Web Tokens (RFC 7519) signed with a secret of the server."""

    def __init__(self, secret: str | None, audience: str) -> None:
        """Without a secret tokens are good until the server stops. ``audience`` keeps apart servers that share one."""
        self._secret = secret or secrets.token_hex(SECRET_BYTES)
        self._audience = audience

    def issue(self, key_id: str, ttl_s: int, origin: str | None = None) -> str:
        """A token that is good for ``ttl_s`` seconds."""
        now = int(time.time())
        claims: dict[str, str | int] = {
            "sub": key_id,
            "aud": self._audience,
            "iat": now,
            "exp": now + ttl_s,
            "jti": secrets.token_hex(8),
        }
        if origin is not None:
            claims["origin"] = origin
        return jwt.encode(claims, self._secret, ALGORITHM)

    def read(self, token: str) -> Claims:
        """What a token says. Raises TokenError."""
        try:
            claims = jwt.decode(
                token,
                self._secret,
                algorithms=[ALGORITHM],
                audience=self._audience,
                options={"require": ["exp", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError:
            raise TokenError("the token has expired; get a new one from POST /v1/tokens") from None
        except jwt.InvalidTokenError:
            raise TokenError("the token is not valid here; get one from POST /v1/tokens") from None
        return Claims(claims["sub"], claims.get("origin"))
