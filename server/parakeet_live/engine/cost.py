"""What a batch costs: measured at start, corrected while running."""

from __future__ import annotations

import time

import numpy as np

from parakeet_live.engine.backend import Backend, StepInput
from parakeet_models.frames import SUBSAMPLING_FACTOR

REPETITIONS = 5
LARGE_BATCH = 8
SMOOTHING = 0.05
"""Weight of one batch in the running correction: some twenty batches are remembered."""


class CostModel:
    """Seconds of a batch of n live steps: ``correction * (fixed + per_step * n)``.

    The two costs are the best of a few at start; the correction follows what batches take since, so a machine that
    is busy with other work, or slower when warm, is noticed.
    """

    def __init__(self, single: float, large: float, large_batch: int) -> None:
        """``single`` and ``large``: seconds of a batch of one and of ``large_batch`` steps."""
        self._per_step = max(0.0, large - single) / (large_batch - 1) if large_batch > 1 else 0.0
        self._fixed = max(0.0, single - self._per_step)
        self._correction = 1.0

    @classmethod
    def measure(cls, backend: Backend, bins: int, frames: int) -> CostModel:
        """Time the backend on silence; this also warms it up."""
        slots = [backend.open() for _ in range(min(LARGE_BATCH, backend.best_batch, backend.slots))]
        mel = np.full((SUBSAMPLING_FACTOR * frames + 1, bins), -8.0, np.float32)
        steps = [StepInput(slot, mel, begin=0, end=len(mel)) for slot in slots]
        single, large = _best_time(backend, steps[:1]), _best_time(backend, steps)
        for slot in slots:
            backend.close(slot)
        return cls(single, large, len(slots))

    @property
    def single(self) -> float:
        """Seconds of a batch of one live step, as things are now."""
        return self._correction * (self._fixed + self._per_step)

    def observe(self, batch: int, seconds: float) -> None:
        """A batch of live steps took so long."""
        expected = self._fixed + self._per_step * batch
        if expected > 0.0:
            self._correction += SMOOTHING * (seconds / expected - self._correction)


def _best_time(backend: Backend, steps: list[StepInput]) -> float:
    seconds = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        backend.step(steps)
        seconds.append(time.perf_counter() - started)
    return min(seconds)
