"""A real server in a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = Path(sys.executable).with_name("parakeet-live")
SECONDS_TO_STOP = 20
LINE_START = "listening on "


@contextmanager
def running_server(log: Path, *options: str) -> Iterator[str]:
    """Start ``parakeet-live serve`` with these options; yields the URL of its stream.

    Afterwards it must stop at SIGTERM with exit code 0 and have logged neither an error nor a traceback.
    """
    command = [str(COMMAND), "serve", "--port", "0", *options]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline().decode()
            assert line.startswith(LINE_START), f"no server: {line!r}\n{log.read_text()}"
            yield line.removeprefix(LINE_START).strip()
            process.send_signal(signal.SIGTERM)
            exit_code = process.wait(SECONDS_TO_STOP)
        finally:
            process.kill()
    text = log.read_text()
    assert exit_code == 0, text
    assert "Traceback" not in text, text
    assert " ERROR " not in text, text
