"""Who may do what: the one decision about every request, from what the request shows. No sockets in here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from parakeet_live.access.keys import KEY_PREFIX, KeyRecord, KeyStore
from parakeet_live.access.origins import ANY, host_name, is_loopback, origin_allowed
from parakeet_live.access.tokens import TokenError, TokenSigner


class Denial(StrEnum):
    """Why a request is refused."""

    UNAUTHORIZED = "unauthorized"
    """It shows no key or token, or one that is not valid."""
    FORBIDDEN_ORIGIN = "forbidden_origin"
    """It comes from a web page that may not use this server, or for another host name."""


class AccessDeniedError(Exception):
    """The request is refused; the message names the remedy and repeats nothing secret."""

    def __init__(self, denial: Denial, message: str) -> None:
        super().__init__(message)
        self.denial = denial


class MonitoringAccess(StrEnum):
    """Who may read metrics and statistics."""

    LOOPBACK = "loopback"
    """Programs on this machine, and whoever shows a key."""
    KEY = "key"
    """Whoever shows a key."""
    OPEN = "open"
    """Everyone."""


@dataclass(frozen=True, slots=True)
class Presented:
    """What a request shows of itself."""

    host: str
    """The Host header."""
    client: str | None
    """Address of the client."""
    forwarded: bool = False
    """It says that it came through a proxy."""
    origin: str | None = None
    """The Origin header: only browsers send it."""
    credential: str | None = None
    """A key or a token, from the Authorization header or the list of subprotocols."""
    query_token: str | None = None
    """The query parameter ``token``."""


class Gate:
    """Judges requests. ``keys`` without any key configured lets everyone in whose origin is allowed."""

    def __init__(
        self,
        keys: KeyStore,
        tokens: TokenSigner,
        *,
        allowed_origins: Collection[str] = (),
        allowed_hosts: Collection[str] = (),
        loopback_only: bool = True,
        monitoring: MonitoringAccess = MonitoringAccess.LOOPBACK,
    ) -> None:
        """``loopback_only``: the server listens on the machine's own address alone."""
        self._keys = keys
        self._tokens = tokens
        self._allowed_origins = allowed_origins
        self._allowed_hosts = {name.lower() for name in allowed_hosts}
        self._loopback_only = loopback_only
        self._monitoring = monitoring

    @property
    def needs_key(self) -> bool:
        """True if streams are for holders of a key."""
        return self._keys.configured

    def admit_stream(self, shown: Presented) -> KeyRecord | None:
        """The key a stream is opened with, None where none is needed. Raises AccessDeniedError."""
        self._check_origin(shown)
        if not self.needs_key:
            return None
        if shown.query_token is not None:
            if shown.query_token.startswith(f"{KEY_PREFIX}_"):
                raise AccessDeniedError(
                    Denial.UNAUTHORIZED,
                    "a key must not be part of a URL, which proxies write into their logs: send it as Authorization: "
                    "Bearer KEY, or get a token from POST /v1/tokens",
                )
            return self._key_of_token(shown.query_token, shown.origin)
        if shown.credential is None:
            raise AccessDeniedError(
                Denial.UNAUTHORIZED,
                "this server needs a key: send Authorization: Bearer KEY, or from a browser a token of "
                "POST /v1/tokens as ?token=TOKEN",
            )
        if not shown.credential.startswith(f"{KEY_PREFIX}_"):
            return self._key_of_token(shown.credential, shown.origin)
        return self._key(shown.credential)

    def admit_key(self, shown: Presented) -> KeyRecord:
        """The key a request shows, which must be a key and not a token. Raises AccessDeniedError."""
        self._check_origin(shown)
        if not self.needs_key:
            raise AccessDeniedError(
                Denial.UNAUTHORIZED,
                "this server has no keys, so no tokens are needed: connect without one",
            )
        if shown.credential is None:
            raise AccessDeniedError(Denial.UNAUTHORIZED, "send Authorization: Bearer KEY")
        return self._key(shown.credential)

    def may_monitor(self, shown: Presented) -> bool:
        """True if the request may read metrics and statistics."""
        if self._monitoring is MonitoringAccess.OPEN:
            return True
        if self._monitoring is MonitoringAccess.LOOPBACK and _is_local(shown):
            return True
        return (
            self.needs_key and shown.credential is not None and self._keys.find(shown.credential) is not None
        )

    def issue_token(self, key: KeyRecord, ttl_s: int, origin: str | None) -> str:
        """A token that opens streams in the name of a key."""
        return self._tokens.issue(key.id, ttl_s, origin)

    def _key(self, credential: str) -> KeyRecord:
        key = self._keys.find(credential)
        if key is None:
            raise AccessDeniedError(
                Denial.UNAUTHORIZED, "this key is not valid: it is mistyped or was revoked"
            )
        return key

    def _key_of_token(self, token: str, origin: str | None) -> KeyRecord:
        try:
            claims = self._tokens.read(token)
        except TokenError as error:
            raise AccessDeniedError(Denial.UNAUTHORIZED, str(error)) from None
        if claims.origin is not None and claims.origin != origin:
            raise AccessDeniedError(Denial.UNAUTHORIZED, "the token was made for pages of another origin")
        key = self._keys.get(claims.key_id)
        if key is None:
            raise AccessDeniedError(Denial.UNAUTHORIZED, "the key of this token was revoked")
        return key

    def _check_origin(self, shown: Presented) -> None:
        if not origin_allowed(shown.origin, shown.host, self._allowed_origins):
            raise AccessDeniedError(
                Denial.FORBIDDEN_ORIGIN,
                f"pages of {_shown(shown.origin or '')} may not use this server; "
                "its operator can allow them: --allowed-origins ORIGIN",
            )
        if self.needs_key or not self._loopback_only or shown.forwarded:
            return
        name = host_name(shown.host)
        if not (is_loopback(name) or name in self._allowed_hosts or ANY in self._allowed_hosts):
            raise AccessDeniedError(
                Denial.FORBIDDEN_ORIGIN,
                f"this server is for its own machine alone and is not called {_shown(name)}: connect to "
                "127.0.0.1, or start it with --allowed-hosts NAME",
            )


def _is_local(shown: Presented) -> bool:
    """True for a program of this machine that did not come through a proxy."""
    return (
        not shown.forwarded
        and shown.client is not None
        and is_loopback(shown.client)
        and is_loopback(host_name(shown.host))
    )


def _shown(text: str) -> str:
    return ascii(text[:100])
