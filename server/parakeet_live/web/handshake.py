"""Around every request: an id for the logs, and credentials taken out of the URL before anything can write it down."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SUBPROTOCOL = "parakeet-live"
"""What the server answers to a client that offers it. A browser cannot set headers, but it can offer subprotocols:
``["parakeet-live", "bearer.TOKEN"]``."""
BEARER_PREFIX = "bearer."
REQUEST_ID_HEADER = "x-request-id"

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being served."""

_SANE_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_TAKEN = "parakeet_live.taken_from_query"


class Handshake:
    """ASGI middleware.

    A request keeps the id that a proxy gave it in ``X-Request-ID``, else it gets one; the answer carries it too. The
    query parameter ``token`` is taken out of the scope, so neither log nor error message can hold it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        number = given if _SANE_ID.fullmatch(given) else secrets.token_hex(8)
        request_id.set(number)
        _take_token(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                message.setdefault("headers", [])
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = number
            if message["type"] == "websocket.accept" and SUBPROTOCOL in scope["subprotocols"]:
                message["subprotocol"] = SUBPROTOCOL
            await send(message)

        await self._app(scope, receive, send_with_id)


def query_token(scope: Scope) -> str | None:
    """The token that was in the URL."""
    token: str | None = scope.get(_TAKEN)
    return token


def subprotocol_credential(scope: Scope) -> str | None:
    """The key or token among the subprotocols that a client offers."""
    for name in scope.get("subprotocols", ()):
        if name.startswith(BEARER_PREFIX):
            credential: str = name.removeprefix(BEARER_PREFIX)
            return credential
    return None


def _take_token(scope: Scope) -> None:
    query = scope["query_string"].decode("latin-1")
    if "token" not in query:
        return
    # Unreadable bytes stay distinguishable; the rest of the query is judged later.
    items = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    tokens = [value for name, value in items if name == "token"]
    if tokens:
        scope[_TAKEN] = tokens[-1]
        rest = [item for item in items if item[0] != "token"]
        scope["query_string"] = urlencode(rest, errors="surrogateescape").encode("ascii")
