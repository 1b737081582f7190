"""A worker process, as the backend sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.coreml.channel import Channel, ClosedError
from parakeet_live.engine.coreml.messages import Kind, pack_step, unpack_emissions
from parakeet_live.engine.coreml.worker import Job

STEP_SECONDS = 60.0
"""A step takes milliseconds; a worker that has not answered after so long never will."""
NOTICE_SECONDS = 10.0
"""While a model loads without a word for so long, say that it still does."""
STOP_SECONDS = 5.0
"""Time a worker gets to end before it is killed."""

Report = Callable[[str], None]


class WorkerDiedError(EngineError):
    """The worker process is gone, and the state of its streams with it."""


class UnavailableError(EngineError):
    """The model cannot be loaded here, on whatever processors."""


class WorkerProcess:
    """A worker that has loaded its model. One thread at a time, but ``stop`` may come from any."""

    def __init__(self, job: Job, report: Report) -> None:
        """Start it and wait until it is ready. ``report`` is told what it does.

        Raises:
            EngineError: the model cannot be loaded, or does not compute.
            UnavailableError: no model can be loaded.
            WorkerDiedError: the process died of it.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "parakeet_live.engine.coreml.worker", str(descriptor)],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            )
        self._channel = Channel(ours)
        self.stop = weakref.finalize(self, _stop, self._process, self._channel)
        """End it; also done when the object is forgotten, and at exit."""
        try:
            self._channel.send(Kind.LOAD, job.model_dump_json().encode())
            self.summary = self._wait_until_ready(report)
        except ClosedError:
            raise self._died("while it loaded the model") from None
        except EngineError:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def step(self, step: StepInput, fresh: bool) -> list[Emission]:
        """Run one step.

        Raises:
            EngineError: the step failed; the worker goes on.
            WorkerDiedError: the worker is gone.
        """
        try:
            self._channel.send(Kind.STEP, pack_step(step, fresh))
            kind, body = self._channel.receive(STEP_SECONDS)
        except ClosedError:
            raise self._died("in the middle of a step") from None
        except TimeoutError:
            self._process.kill()
            raise self._died(f"after it had not answered for {STEP_SECONDS:.0f} s") from None
        if kind is Kind.FAILED:
            raise EngineError(body.decode())
        return list(unpack_emissions(body))

    def _wait_until_ready(self, report: Report) -> str:
        waited, doing = 0.0, "starting"
        while True:
            try:
                kind, body = self._channel.receive(NOTICE_SECONDS)
            except TimeoutError:
                waited += NOTICE_SECONDS
                report(
                    f"still {doing} after {waited:.0f} s; the first start of a model on a machine takes longest"
                )
                continue
            if kind is Kind.READY:
                return body.decode()
            if kind is Kind.FAILED:
                raise EngineError(body.decode())
            if kind is Kind.UNAVAILABLE:
                raise UnavailableError(body.decode())
            waited, doing = 0.0, body.decode()
            report(doing)

    def _died(self, when: str) -> WorkerDiedError:
        self.stop()
        return WorkerDiedError(f"the recognition process ended {when} ({_cause(self._process.returncode)})")


def _cause(code: int | None) -> str:
    if code is None:
        return "the engine was stopped"
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _stop(process: subprocess.Popen[bytes], channel: Channel) -> None:
    channel.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
