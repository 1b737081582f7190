"""The backend for published ONNX exports; those for Core ML run in the worker processes of ``engine.coreml``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.engine.cores import usable_cores
from parakeet_live.engine.nemo.graph import OnnxGraph
from parakeet_live.engine.nemo.network import NemoNetwork
from parakeet_live.engine.slots import FreeSlots
from parakeet_models.layouts import ForeignBundle


class NemoOnnxBackend:
    """Streams one at a time on each lane: published graphs are made for one, and gain little from a batch."""

    def __init__(self, bundle: ForeignBundle, slots: int) -> None:
        """Load and test the graphs. Raises EngineError with the reason and the remedy."""

        def open_graph(part: str, path: Path) -> OnnxGraph:
            return OnnxGraph(path)

        self._network = NemoNetwork(bundle.layout, slots, open_graph)
        self._slots = FreeSlots(slots)
        self._fresh: set[int] = set()
        """Slots whose stream has not begun."""

    @property
    def slots(self) -> int:
        return self._slots.total

    @property
    def best_batch(self) -> int:
        return 1

    @property
    def lanes(self) -> int:
        return usable_cores()

    def home_of(self, slot: int) -> None:
        """Every lane runs every slot."""

    def open(self) -> int:
        slot = self._slots.take()
        self._fresh.add(slot)
        return slot

    def close(self, slot: int) -> None:
        self._network.forget(slot)
        self._slots.give(slot)

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        results = []
        for step in inputs:
            fresh = step.slot in self._fresh
            self._fresh.discard(step.slot)
            results.append(self._network.step(step, fresh))
        return results

    def shut_down(self) -> None:
        """Nothing outlives the object."""
