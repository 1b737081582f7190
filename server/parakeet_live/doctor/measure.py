"""How fast recognition is here: one stream alone, then every lane busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parakeet_live.audio.files import read_blocks
from parakeet_live.demo import RECORDING
from parakeet_live.doctor.findings import Finding, Level
from parakeet_live.engine.backend import Backend
from parakeet_live.engine.backends import open_backend
from parakeet_live.engine.cores import usable_cores
from parakeet_live.engine.onnx import MAX_SMALL_BATCH
from parakeet_live.engine.warmup import SERVING_SHARE, Speech, warm_up
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts import AnyBundle

SECONDS = 10.0
"""Length of the measurement; loading and warming up come on top."""
ALONE_SHARE = 0.3
"""Part of it with one stream alone."""
BUSY_LANES = 0.7
"""Share of the lanes that the suggested number of streams keeps busy. The rest is for hiccups and for catching up."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured, with steps of ``step_ms`` of audio."""

    load_seconds: float
    step_ms: float
    step_cost_ms: float
    """A live step of one stream alone."""
    lanes: int
    batch: int
    steps_per_second: float
    """Of all lanes together, in batches of ``batch``."""

    @property
    def real_time_factor(self) -> float:
        """Seconds of work for a second of audio of one stream alone."""
        return self.step_cost_ms / self.step_ms

    @property
    def suggested_streams(self) -> int:
        """Live streams at the same time that keep :data:`BUSY_LANES` of the lanes busy; 0 if one is too many."""
        if self.real_time_factor >= 1:
            return 0
        lane_seconds = self.lanes / (self.steps_per_second * self.step_ms / 1000)
        return max(1, int(BUSY_LANES * self.lanes / (lane_seconds + SERVING_SHARE)))


def measure(
    bundle: AnyBundle, *, seconds: float = SECONDS, report: Callable[[str], None] = lambda text: None
) -> Speed:
    """Load the network and run it on the demo recording. Raises EngineError if it cannot be run here."""
    manifest = bundle.manifest
    live = manifest.step_sizes[0]
    samples = np.concatenate(list(read_blocks(RECORDING)))
    report("loading")
    started = time.perf_counter()
    backend = open_backend(bundle, usable_cores() * MAX_SMALL_BATCH)
    load_seconds = time.perf_counter() - started
    lanes, batch = backend.lanes, backend.best_batch
    try:
        report("warming up")
        warm_up(backend, manifest, samples, lanes=lanes, max_batch=batch)
        report("measuring one stream")
        alone = _steps_per_second(backend, [Speech(manifest, samples)], 1, ALONE_SHARE * seconds, live)
        report(f"measuring {lanes * batch} streams on {lanes} lanes")
        speeches = [Speech(manifest, samples) for _ in range(lanes)]
        together = _steps_per_second(backend, speeches, batch, (1 - ALONE_SHARE) * seconds, live)
    finally:
        backend.shut_down()
    step = live * SUBSAMPLING_FACTOR * manifest.mel.hop_length / manifest.mel.sample_rate
    return Speed(load_seconds, 1000 * step, 1000 / alone, lanes, batch, together)


def speed_findings(speed: Speed) -> list[Finding]:
    """The figures in words."""
    factor = speed.real_time_factor
    cost = f"{speed.step_cost_ms:.1f} ms for a step of {speed.step_ms:.0f} ms: real-time factor {factor:.3f}"
    if factor >= 1:
        alone = Finding(
            "speed",
            cost,
            Level.PROBLEM,
            "too slow for live speech here: take an int8 bundle, or a faster machine",
        )
    else:
        alone = Finding("speed", cost)
    pool = (
        f"{speed.suggested_streams} live streams ({speed.steps_per_second:.0f} steps/s in batches of {speed.batch} on "
        f"{speed.lanes} lanes, {BUSY_LANES:.0%} busy): --max-streams {max(1, speed.suggested_streams)}"
    )
    return [Finding("loading", f"{speed.load_seconds:.1f} s"), alone, Finding("pool size", pool)]


def _steps_per_second(
    backend: Backend, speeches: list[Speech], batch: int, seconds: float, frames: int
) -> float:
    """Steps of all threads together; each of ``speeches`` feeds the batches of one thread."""
    slots = [[backend.open() for _ in range(batch)] for _ in speeches]
    counts = [0] * len(speeches)
    failures: list[Exception] = []
    started = time.perf_counter()

    def run(lane: int) -> None:
        try:
            while time.perf_counter() - started < seconds:
                backend.step(speeches[lane].steps(slots[lane], frames))
                counts[lane] += batch
        except Exception as error:  # raised again by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=run, args=(lane,)) for lane in range(len(speeches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    for slot in (slot for lane in slots for slot in lane):
        backend.close(slot)
    if failures:
        raise failures[0]
    return sum(counts) / elapsed
