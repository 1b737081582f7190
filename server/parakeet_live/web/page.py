"""The page at ``/``: the files of :mod:`parakeet_page`, with what a browser must know to trust and refresh them."""

from __future__ import annotations

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

from parakeet_page import directory

HEADERS = {
    # Only what this server serves runs or is shown.
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Permissions-Policy": "microphone=(self)",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Modules of two releases must never meet in one browser.
    "Cache-Control": "no-cache",
}


class Page(StaticFiles):
    """The page and its modules; mounted after every other route."""

    def __init__(self) -> None:
        super().__init__(directory=directory(), html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response
