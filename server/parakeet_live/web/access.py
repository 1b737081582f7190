"""What requests show of themselves, and who gets in: the gate of :mod:`parakeet_live.access` at this server's door."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import HTTPConnection

from parakeet_live.access.gate import AccessDeniedError, Denial, Gate, Presented
from parakeet_live.access.keys import KeyStore, parse_entry
from parakeet_live.access.origins import is_loopback
from parakeet_live.access.tokens import TokenSigner
from parakeet_live.access.usage import Lease, Usage
from parakeet_live.settings import Settings
from parakeet_live.web.handshake import query_token, subprotocol_credential

TOKENS_PATH = "/v1/tokens"
FORWARDING_HEADERS = ("x-forwarded-for", "forwarded", "x-real-ip")


class AccessControl:
    """The gate and the accounts of one server."""

    def __init__(self, settings: Settings) -> None:
        """Raises KeyFileError if the keys cannot be read."""
        secret = settings.token_secret
        self._gate = Gate(
            KeyStore(settings.keys_file, map(parse_entry, settings.keys)),
            TokenSigner(secret.get_secret_value() if secret else None, settings.token_audience),
            allowed_origins=settings.allowed_origins,
            allowed_hosts=settings.allowed_hosts,
            loopback_only=is_loopback(settings.host),
            monitoring=settings.monitoring_access,
        )
        self._usage = Usage(settings.key_max_streams, settings.key_audio_minutes_per_day)

    def open_stream(self, request: HTTPConnection) -> Lease:
        """The right to one stream. Raises AccessDeniedError or KeyLimitError."""
        key = self._gate.admit_stream(presented(request))
        return Lease() if key is None else self._usage.open(key)

    def holder(self, request: HTTPConnection) -> str:
        """Name and id of the key that a request shows for a stream it has already; empty if none is needed.

        Raises AccessDeniedError.
        """
        key = self._gate.admit_stream(presented(request))
        return "" if key is None else key.label

    def may_monitor(self, request: HTTPConnection) -> bool:
        """True if the request may read metrics and statistics."""
        return self._gate.may_monitor(presented(request))

    def refuse_monitoring(self) -> JSONResponse:
        """The answer to a request that may not."""
        message = (
            "for programs on the server's own machine, or with a key; the setting monitoring_access says who"
        )
        denial = Denial.UNAUTHORIZED if self._gate.needs_key else Denial.FORBIDDEN_ORIGIN
        return denied(AccessDeniedError(denial, message))

    def token(self, request: HTTPConnection, ttl_s: int, origin: str | None) -> str:
        """A token in the name of the key that the request shows. Raises AccessDeniedError."""
        return self._gate.issue_token(self._gate.admit_key(presented(request)), ttl_s, origin)


def presented(request: HTTPConnection) -> Presented:
    """What a request shows of itself."""
    headers = request.headers
    scheme, _, value = headers.get("authorization", "").partition(" ")
    bearer = value.strip() if scheme.lower() == "bearer" else None
    return Presented(
        host=headers.get("host", ""),
        client=request.client.host if request.client else None,
        forwarded=any(name in headers for name in FORWARDING_HEADERS),
        origin=headers.get("origin"),
        credential=bearer or subprotocol_credential(request.scope),
        query_token=query_token(request.scope),
    )


class TokenRequest(BaseModel):
    """Body of ``POST /v1/tokens``; everything may be left out."""

    model_config = ConfigDict(extra="forbid")

    ttl_s: int = Field(default=60, ge=1)
    origin: str | None = Field(default=None, max_length=300)


def token_routes(access: AccessControl, max_ttl_s: int) -> APIRouter:
    """``POST /v1/tokens``."""
    routes = APIRouter()

    @routes.post(TOKENS_PATH)
    async def make_token(
        request: Request, wanted: Annotated[TokenRequest | None, Body()] = None
    ) -> JSONResponse:
        asked = wanted or TokenRequest()
        if asked.ttl_s > max_ttl_s:
            return JSONResponse({"error": f"ttl_s can be {max_ttl_s} at most"}, 422)
        try:
            token = access.token(request, asked.ttl_s, asked.origin)
        except AccessDeniedError as error:
            return denied(error)
        return JSONResponse(
            {"token": token, "expires_in": asked.ttl_s}, headers={"Cache-Control": "no-store"}
        )

    return routes


def denied(error: AccessDeniedError) -> JSONResponse:
    """The refusal of a plain request."""
    if error.denial is Denial.UNAUTHORIZED:
        return JSONResponse({"error": str(error)}, 401, {"WWW-Authenticate": "Bearer"})
    return JSONResponse({"error": str(error)}, 403)
