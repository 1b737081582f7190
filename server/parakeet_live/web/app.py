"""The FastAPI application: routes, and the life of the recogniser behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, WebSocket
from fastapi.responses import HTMLResponse, PlainTextResponse

from parakeet_live.audio.formats import TARGET_RATE
from parakeet_live.dialects.messages import CloseCode, ErrorCode
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.page import START_PAGE
from parakeet_live.web.stream import refuse_stream, serve_stream
from parakeet_models.bundle import Bundle

STREAM_PATH = "/v1/stream"
STATS_PATH = "/v1/stats"


def create_app(bundle: Bundle, settings: Settings) -> FastAPI:
    """The application that serves a bundle."""
    recognizer = Recognizer.load(bundle, max_streams=settings.max_streams, lanes=settings.lanes)
    return build_app(recognizer, settings)


def build_app(recognizer: Recognizer, settings: Settings) -> FastAPI:
    """The application around a recogniser, which starts and stops with it."""
    if recognizer.sample_rate != TARGET_RATE:
        raise ValueError(
            f"the model takes {recognizer.sample_rate} Hz; the server is built for {TARGET_RATE} Hz"
        )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with recognizer:
            yield

    app = FastAPI(title="parakeet-live", lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/", response_class=HTMLResponse)
    async def start_page() -> str:
        return START_PAGE

    @app.get("/healthz")
    async def health() -> dict[str, str | int]:
        return {
            "status": "ok",
            "version": version("parakeet-live"),
            "model": recognizer.bundle_name,
            "active_streams": recognizer.active_streams,
            "max_streams": recognizer.max_streams,
        }

    @app.get(STATS_PATH)
    async def stats() -> dict[str, Any]:
        return {
            "streams": {
                "active": recognizer.active_streams,
                "max": recognizer.max_streams,
                "largest_backlog_ms": recognizer.largest_backlog_ms,
            },
            "lanes": recognizer.lanes,
            "step_cost_ms": round(recognizer.step_cost_ms, 2),
            "engine": recognizer.stats.snapshot(),
        }

    @app.get(STREAM_PATH)
    @app.get(STREAM_PATH + "/")
    async def explain_stream() -> PlainTextResponse:
        return PlainTextResponse(
            f"{STREAM_PATH} is a WebSocket endpoint: connect to it with ws:// or wss://, not with a plain request.\n",
            status_code=426,
            headers={"Connection": "Upgrade", "Upgrade": "websocket"},
        )

    @app.websocket(STREAM_PATH)
    @app.websocket(STREAM_PATH + "/")
    async def stream(websocket: WebSocket) -> None:
        await serve_stream(websocket, recognizer, settings)

    @app.websocket("/{path:path}")
    async def wrong_path(websocket: WebSocket, path: str) -> None:
        # Without this a mistyped path is answered by 403, which sounds like a missing permission.
        message = f"there is no stream at this path; connect to {STREAM_PATH}"
        await refuse_stream(websocket, ErrorCode.WRONG_PATH, message, CloseCode.POLICY)

    return app
