"""Run an application under uvicorn, the way this project needs it."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from parakeet_live.settings import Settings
from parakeet_live.web.app import STREAM_PATH
from parakeet_live.web.lifecycle import Lifecycle
from parakeet_live.web.upgrade import StreamProtocol, UpgradeProtocol

log = logging.getLogger(__name__)


RECEIVE_BUFFER = 256 * 1024
"""Bytes that the kernel takes from a client before the server reads them. Left to itself it takes megabytes, which are
minutes of audio, and a client's ping waits behind them until the client gives up."""
SHUTDOWN_SECONDS = 1
"""What still runs after draining has this long to end."""


class Server(uvicorn.Server):
    """uvicorn with this project's settings; ``announce`` is called once clients are admitted."""

    def __init__(self, app: FastAPI, settings: Settings, announce: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                # The caller has configured logging. Sessions have lines of their own; uvicorn speaks up when
                # something is wrong.
                log_config=None,
                access_log=False,
                log_level="warning",
                http=UpgradeProtocol,
                ws=StreamProtocol,
                ws_max_size=settings.max_frame_bytes,
                ws_ping_interval=settings.ping_interval_s,
                ws_ping_timeout=settings.ping_timeout_s,
                # Audio does not compress, and a compressor is memory and time for every connection.
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                server_header=False,
            )
        )
        self.failure: Exception | None = None
        """Why the application could not start."""
        self._drain_seconds = settings.drain_s
        self._lifecycle: Lifecycle = app.state.lifecycle
        self._announce = announce
        self._starting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._starting = asyncio.create_task(self._wait_until_started())

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends the server when its sessions are through, the second at once."""
        if self.should_exit:
            self.force_exit = True
        else:
            self._lifecycle.stop_admitting()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # While clients get their last results the server still listens, to refuse others with a reason, and to let
        # those back in that have just lost their connection.
        draining = asyncio.create_task(self._lifecycle.drain())
        deadline = time.monotonic() + self._drain_seconds
        while not (draining.done() or self.force_exit or time.monotonic() >= deadline):
            await asyncio.wait((draining,), timeout=0.05)
        if not draining.done():
            log.warning(
                "not every session could be ended in time" if not self.force_exit else "stopped at once"
            )
        draining.cancel()
        await super().shutdown(sockets)

    async def _wait_until_started(self) -> None:
        try:
            await self._lifecycle.started()
        except Exception as error:
            self.failure = error
            self.should_exit = True
        else:
            self._announce()


def run_server(app: FastAPI, settings: Settings, on_started: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one.

    ``on_started`` gets the URL of the stream once clients are admitted; health checks are answered before. OSError if
    the port is taken; what loading the model raised, if that failed.
    """
    host = settings.host
    with listening_socket(host, settings.port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"{shown}:{listener.getsockname()[1]}"
        log.info("health checks are answered at %s; loading the model", address)

        def announce() -> None:
            # What was loaded stays for good: the garbage collector need not walk over it again and again.
            gc.collect()
            gc.freeze()
            scheme = "wss" if settings.tls_cert else "ws"
            on_started(f"{scheme}://{address}{STREAM_PATH}")

        server = Server(app, settings, announce)
        with _signals_end_quietly():
            server.run(sockets=[listener])
    if server.failure is not None:
        raise server.failure


def listening_socket(host: str, port: int) -> socket.socket:
    """Its connections inherit RECEIVE_BUFFER. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    return listener


@contextmanager
def _signals_end_quietly() -> Iterator[None]:
    """After a clean shutdown uvicorn raises the signal again; that must not become a failure exit code."""

    def ignore(number: int, frame: FrameType | None) -> None:
        return None

    previous = {number: signal.signal(number, ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
