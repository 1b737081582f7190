"""The FastAPI application: routes, and the life of the recogniser behind them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, WebSocket
from fastapi.responses import PlainTextResponse

from parakeet_live.access.gate import AccessDeniedError, Denial
from parakeet_live.access.usage import KeyLimitError
from parakeet_live.audio.formats import TARGET_RATE
from parakeet_live.dialects.messages import CloseCode, ErrorCode
from parakeet_live.engine.backend import EngineError
from parakeet_live.engine.backends import open_backend
from parakeet_live.engine.cores import usable_cores
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.access import AccessControl, token_routes
from parakeet_live.web.admission import RETRY_AFTER_SECONDS
from parakeet_live.web.handshake import Handshake
from parakeet_live.web.lifecycle import Lifecycle, NotReadyError
from parakeet_live.web.metrics import ServerMetrics
from parakeet_live.web.observer import Observer
from parakeet_live.web.page import Page
from parakeet_live.web.probes import probe_routes
from parakeet_live.web.stream import refuse_stream, serve_stream
from parakeet_live.web.tracing import UtteranceTracer
from parakeet_models.layouts import AnyBundle

log = logging.getLogger(__name__)

STREAM_PATH = "/v1/stream"
REFUSALS = {
    Denial.UNAUTHORIZED: (ErrorCode.UNAUTHORIZED, CloseCode.UNAUTHORIZED),
    Denial.FORBIDDEN_ORIGIN: (ErrorCode.FORBIDDEN_ORIGIN, CloseCode.FORBIDDEN),
}
STREAMS_PER_LANE = 64
"""Room for streams where the number is measured and not set: more than a core carries of the full-size network."""


def create_app(bundle: AnyBundle, settings: Settings) -> FastAPI:
    """The application that serves a bundle; it is loaded once the application runs."""

    def load() -> Recognizer:
        slots = settings.max_streams or STREAMS_PER_LANE * (settings.lanes or usable_cores())
        backend = open_backend(bundle, slots, settings.backend, settings.coreml)
        recognizer = Recognizer(bundle, backend, lanes=settings.lanes)
        if recognizer.sample_rate != TARGET_RATE:
            raise EngineError(
                f"the model takes {recognizer.sample_rate} Hz; the server is built for {TARGET_RATE} Hz"
            )
        return recognizer

    return build_app(load, settings)


def build_app(load: Callable[[], Recognizer], settings: Settings) -> FastAPI:
    """The application around the recogniser that ``load`` returns; ``app.state`` has its lifecycle and observer."""
    tracer = UtteranceTracer() if settings.trace_utterances else None
    observer = Observer(log_transcripts=settings.log_transcripts, tracer=tracer)
    lifecycle = Lifecycle(load, observer, settings)
    access = AccessControl(settings)
    metrics = ServerMetrics(lifecycle, observer)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with lifecycle:
            yield

    app = FastAPI(title="parakeet-live", lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.lifecycle = lifecycle
    app.state.observer = observer
    app.add_middleware(Handshake)
    app.include_router(probe_routes(lifecycle, access, metrics))
    app.include_router(token_routes(access, settings.token_max_ttl_s))

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
        try:
            service = lifecycle.service
        except NotReadyError as error:
            message = f"{error}; try again in some seconds"
            await refuse_stream(
                websocket, ErrorCode.NOT_READY, message, CloseCode.TRY_AGAIN_LATER, RETRY_AFTER_SECONDS
            )
            return
        try:
            await serve_stream(websocket, service, access)
        except AccessDeniedError as error:
            code, close_code = REFUSALS[error.denial]
            await refuse_stream(websocket, code, str(error), close_code)
        except KeyLimitError as error:
            await refuse_stream(websocket, ErrorCode.KEY_LIMIT, str(error), CloseCode.LIMIT_REACHED)

    @app.websocket("/{path:path}")
    async def wrong_path(websocket: WebSocket, path: str) -> None:
        # Without this a mistyped path is answered by 403, which sounds like a missing permission.
        message = f"there is no stream at this path; connect to {STREAM_PATH}"
        await refuse_stream(websocket, ErrorCode.WRONG_PATH, message, CloseCode.POLICY)

    app.mount("/", Page())
    return app
