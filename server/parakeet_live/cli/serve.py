"""``parakeet-live serve``: the WebSocket server."""

from __future__ import annotations

import errno
import logging
from enum import StrEnum
from typing import Annotated

import typer

from parakeet_live.cli.bundles import ModelOption, choose_bundle
from parakeet_live.cli.console import fail


class LogLevel(StrEnum):
    """How much the server says on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def serve(
    host: Annotated[
        str,
        typer.Option(help="Address to listen on. 0.0.0.0 lets other machines connect."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one."),
    ] = 8765,
    model: ModelOption = None,
    max_streams: Annotated[
        int,
        typer.Option(min=1, help="Streams served at the same time; further clients are told to try later."),
    ] = 64,
    log_level: Annotated[LogLevel, typer.Option(help="What to log on standard error.")] = LogLevel.INFO,
) -> None:
    """Start the server. Clients stream audio to ws://HOST:PORT/v1/stream and get text back.

    The first line on standard output is "listening on URL", printed once connections are accepted.
    Ctrl-C stops the server.
    """
    from parakeet_live.web.app import create_app
    from parakeet_live.web.run import run_server

    logging.basicConfig(
        level=log_level.value.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    app = create_app(choose_bundle(model), max_streams=max_streams)
    try:
        run_server(app, host, port, on_started=_announce)
    except OSError as error:
        fail(_listening_problem(error, host, port))


def _announce(url: str) -> None:
    # Flushed, because a parent process waits for this line on a pipe.
    print(f"listening on {url}", flush=True)


def _listening_problem(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: stop what listens there, or choose another with --port"
    if isinstance(error, PermissionError):
        return f"not allowed to listen on port {port}: choose one above 1023 with --port"
    reason = str(error.strerror).partition(" (while attempting")[0]
    return f"cannot listen on {host}, port {port}: {reason}; --host takes an address of this machine"
