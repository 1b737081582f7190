"""A server in a child process, for the commands that show or measure a real one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from parakeet_live.engine.backends import BackendChoice
from parakeet_live.settings import ENVIRONMENT_PREFIX

ANNOUNCEMENT = "listening on "
"""How the first line of ``serve`` begins."""
STOP_SECONDS = 10
"""Time the server gets to end before it is killed."""


class ServerStartError(Exception):
    """The server did not come up; what it wrote to standard error says why."""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server: the URL of its stream and its process id."""

    url: str
    pid: int


@contextmanager
def server_process(
    model: Path | None,
    *,
    max_streams: int,
    backend: BackendChoice = BackendChoice.AUTO,
    options: Sequence[str] = (),
    log: IO[str] | None = None,
) -> Iterator[ServerProcess]:
    """Run ``parakeet-live serve`` on a free local port, with further ``options``; without ``log`` its standard error
    is this process's."""
    options = ["--port", "0", "--log-level", "warning", "--max-streams", str(max_streams), *options]
    options += ["--backend", backend.value]
    if model:
        options += ["--model", str(model)]
    command = [sys.executable, "-m", "parakeet_live", "serve", *options]
    # A server for this command alone: what is set for another one (keys, certificates) would be in its way.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(ANNOUNCEMENT):
                raise ServerStartError("the server did not start")
            yield ServerProcess(line.removeprefix(ANNOUNCEMENT).strip(), process.pid)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
