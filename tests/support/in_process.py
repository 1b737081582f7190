"""A server in the test's own event loop, for faults that cannot be caused from outside."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.app import STREAM_PATH, build_app
from parakeet_live.web.run import Server

DEFAULTS = Settings(warm_up=False)


@asynccontextmanager
async def serving(recognizer: Recognizer, settings: Settings = DEFAULTS) -> AsyncIterator[str]:
    """Serve this recogniser on a real socket; yields the URL of its stream once clients are admitted."""
    async with listening(build_app(lambda: recognizer, settings), settings) as (url, started):
        await started.wait()
        yield url


@asynccontextmanager
async def listening(app: FastAPI, settings: Settings = DEFAULTS) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Serve this application; yields the URL of its stream at once, and what is set once clients are admitted."""
    started = asyncio.Event()
    server = Server(app, settings, started.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}{STREAM_PATH}"
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield url, started
        finally:
            server.should_exit = True
            await task
