"""A place where streams live: one worker process, and its successor when it dies."""

from __future__ import annotations

import logging
import threading

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.coreml.process import Report, WorkerDiedError, WorkerProcess
from parakeet_live.engine.coreml.worker import Job

log = logging.getLogger(__name__)

LOST = "the recognition process of this stream ended and its state is lost; start a new stream"


class Replica:
    """Every worker it has had is a generation; a stream lives and dies with one."""

    def __init__(self, job: Job, report: Report) -> None:
        """Raises EngineError if the model cannot be loaded or does not compute."""
        self._job = job
        self._lock = threading.Lock()
        self._worker = WorkerProcess(job, report)
        self._generation = 0
        self._stopped = False

    @property
    def pid(self) -> int:
        """Of the worker there is now."""
        return self._worker.pid

    @property
    def summary(self) -> str:
        """What the worker said of its speed."""
        return self._worker.summary

    def step(self, step: StepInput, generation: int | None) -> tuple[list[Emission], int]:
        """Run a step of a stream of this generation; None: its first, on whatever worker there is.

        Returns the emissions and the stream's generation. Raises EngineError if the step failed or the worker is
        gone; its successor starts at once, and streams that have not begun wait for it.
        """
        if generation not in (None, self._generation):
            raise EngineError(LOST)
        with self._lock:
            if generation is None and not self._worker.alive:
                self._start_another()
            if generation not in (None, self._generation):
                raise EngineError(LOST)
            try:
                return self._run(step, generation)
            except WorkerDiedError:
                if generation is not None or self._stopped:
                    raise
            # Nothing of this stream is lost yet. A process that dies can look alive for a moment; try another, once.
            self._start_another()
            return self._run(step, generation)

    def _run(self, step: StepInput, generation: int | None) -> tuple[list[Emission], int]:
        """The step on the worker there is; if that dies of it, a successor is started. The lock is held."""
        try:
            return self._worker.step(step, fresh=generation is None), self._generation
        except WorkerDiedError:
            self._generation += 1
            if not self._stopped:
                threading.Thread(target=self._replace, name="coreml-restart", daemon=True).start()
            raise

    def stop(self) -> None:
        """End the worker; a step that runs fails."""
        self._stopped = True
        self._worker.stop()

    def _replace(self) -> None:
        with self._lock:
            try:
                if not self._worker.alive:
                    self._start_another()
            except EngineError as error:
                if self._stopped:
                    return
                log.error("no new recognition process: %s; the next stream tries again", error)

    def _start_another(self) -> None:
        if self._stopped:
            raise EngineError("the engine was stopped")
        log.warning("recognition process %d is gone; starting another", self._worker.pid)
        self._generation += 1
        self._worker = WorkerProcess(self._job, log.info)
        if self._stopped:
            self._worker.stop()
