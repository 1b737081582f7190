"""A server in the test's own event loop, for faults that cannot be caused from outside."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.app import STREAM_PATH, build_app
from parakeet_live.web.run import Server

DEFAULTS = Settings()


@asynccontextmanager
async def serving(recognizer: Recognizer, settings: Settings = DEFAULTS) -> AsyncIterator[str]:
    """Serve this recogniser on a real socket; yields the URL of its stream."""
    started = asyncio.Event()
    server = Server(build_app(recognizer, settings), settings, started.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}{STREAM_PATH}"
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await started.wait()
        try:
            yield url
        finally:
            server.should_exit = True
            await task
