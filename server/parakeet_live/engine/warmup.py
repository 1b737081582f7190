"""Before the first stream: run every kind of batch once, and measure how fast this machine is.

Runtimes plan memory and choose kernels at the first run of a shape, so a server that skips this is slow for its first
clients. The input is speech, not silence: a decoder that emits nothing leaves its own path cold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parakeet_live.audio.mel import StreamingMel
from parakeet_live.engine.backend import Backend, StepInput
from parakeet_models.bundle import ModelInfo
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32

MEASURE_SECONDS = 0.5
"""Least time of a measurement: several periods of a container's processor quota, which is 100 ms by default."""
HEADROOM = 0.75
"""Share of the processor that live streams may fill: beyond it queues grow with every hiccup."""
SERVING_SHARE = 0.005
"""Part of a core that a live stream takes outside of the network: socket, resampling, mel, JSON. Measured with the
embedded model, whose network costs next to nothing (docs/performance.md)."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What this machine can do with this network, measured at start."""

    real_time_factor: float
    """Seconds of work for one second of audio of a single live stream; above 1 its text falls behind."""
    streams: int
    """Live streams at the same time without lag; 0 if not even one."""


def warm_up(
    backend: Backend, manifest: ModelInfo, samples: Float32, *, lanes: int, max_batch: int
) -> Capacity:
    """Run every step size alone and in its largest batch, and every slot that can be in use; time live steps.

    ``samples``: float32[n], some seconds of speech at the model's rate. Every slot must be free; they are again
    afterwards. Blocks for seconds.
    """
    speech = Speech(manifest, samples)
    live = manifest.step_sizes[0]
    period = live * SUBSAMPLING_FACTOR * manifest.mel.hop_length / manifest.mel.sample_rate
    slots = [backend.open() for _ in range(min(max_batch, backend.slots))]
    try:
        for frames in manifest.step_sizes:
            most = max(1, max_batch * live // frames)
            backend.step(speech.steps(slots[:1], frames))
            backend.step(speech.steps(slots[:most], frames))
        single = _seconds(backend, speech, slots[:1], live)
        share = _seconds(backend, speech, slots, live) / len(slots)
        factor = single / period
        streams = int(HEADROOM * lanes / (share / period + SERVING_SHARE)) if factor < 1 else 0
        # Slots beyond what the machine carries stay untouched: each takes memory once it has been used.
        slots += [backend.open() for _ in range(len(slots), min(streams, backend.slots))]
        for start in range(max_batch, len(slots), max_batch):
            backend.step(speech.steps(slots[start : start + max_batch], live))
    finally:
        for slot in slots:
            backend.close(slot)
    return Capacity(factor, streams)


class Speech:
    """Steps cut from a recording, one after the other, from the start again at its end."""

    def __init__(self, manifest: ModelInfo, samples: Float32) -> None:
        largest = max(manifest.step_sizes) * SUBSAMPLING_FACTOR + 1
        needed = (largest + SUBSAMPLING_FACTOR) * manifest.mel.hop_length
        mel = StreamingMel(manifest.mel)
        mel.push(np.resize(samples, max(len(samples), needed)))
        self._mel = mel.read((mel.available - 1) // SUBSAMPLING_FACTOR * SUBSAMPLING_FACTOR + 1)
        self._at = 0

    def steps(self, slots: Sequence[int], frames: int) -> list[StepInput]:
        """One step for each slot, all of the same piece of speech."""
        length = SUBSAMPLING_FACTOR * frames
        if self._at + length >= len(self._mel):
            self._at = 0
        piece = self._mel[self._at : self._at + length + 1]
        self._at += length
        return [StepInput(slot, piece, begin=0, end=len(piece)) for slot in slots]


def _seconds(backend: Backend, speech: Speech, slots: Sequence[int], frames: int) -> float:
    """Mean time of a batch of one step for each slot. The mean, because a throttled processor is fast in between."""
    started, runs = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - started) < MEASURE_SECONDS:
        backend.step(speech.steps(slots, frames))
        runs += 1
    return elapsed / runs
