"""The backend for published layouts: every stream keeps the caches its graphs return."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from parakeet_live.engine.backend import CapacityError, Emission, StepInput
from parakeet_live.engine.cores import usable_cores
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_live.engine.nemo.decoder import open_networks
from parakeet_live.engine.nemo.encoder import EncoderMemory, WindowedEncoder
from parakeet_live.engine.nemo.graph import CoreMLGraph, Graph, OnnxGraph, OpenModel, open_core_ml
from parakeet_live.engine.nemo.selftest import check_cadence
from parakeet_models.layouts.layout import ForeignBundle, LayoutRuntime

ENCODER_UNITS = "CPU_AND_NE"
DECODER_UNITS = "CPU_ONLY"
"""Core ML has no path for an LSTM on the Neural Engine, and the way there would cost more than the work."""


class NemoBackend:
    """Owns the state of every slot. One stream at a time: these graphs have no batch worth using."""

    def __init__(self, bundle: ForeignBundle, slots: int, open_model: OpenModel = open_core_ml) -> None:
        """Load the graphs and test them.

        Raises:
            EngineError: they do not run here, or cannot be streamed exactly; with the reason and the remedy.
        """
        layout = bundle.layout
        self._runtime = layout.runtime
        open_graph = partial(_open_graph, layout.runtime, open_model)
        self._encoder = WindowedEncoder(layout, open_graph(layout.encoder.path, ENCODER_UNITS))
        check_cadence(layout, self._encoder)
        networks = open_networks(layout, open_graph)
        self._decoder = GreedyDecoder(networks, networks, layout.tokens, slots)
        self._memories: dict[int, EncoderMemory] = {}
        self._slots = slots
        self._free = list(range(slots))

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def best_batch(self) -> int:
        return 1

    @property
    def lanes(self) -> int:
        return usable_cores() if self._runtime == "onnx" else 1

    def home_of(self, slot: int) -> None:
        """Every lane runs every slot."""

    def open(self) -> int:
        if not self._free:
            raise CapacityError(
                f"all {self._slots} slots are taken; close a stream or raise the number of slots"
            )
        slot = heapq.heappop(self._free)
        self._memories[slot] = self._encoder.begin()
        self._decoder.restart(slot)
        return slot

    def close(self, slot: int) -> None:
        del self._memories[slot]
        heapq.heappush(self._free, slot)

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        return [self._step(step) for step in inputs]

    def _step(self, step: StepInput) -> list[Emission]:
        encoded = self._encoder.step(step, self._memories[step.slot])
        if step.restart:
            self._decoder.restart(step.slot)
        return self._decoder.decode(np.array([step.slot]), encoded[None], np.array([len(encoded)]))[0]

    def shut_down(self) -> None:
        """Nothing outlives the object."""


def _open_graph(
    runtime: LayoutRuntime, open_model: OpenModel, path: Path, units: str = DECODER_UNITS
) -> Graph:
    return OnnxGraph(path) if runtime == "onnx" else CoreMLGraph(open_model(path, units))
