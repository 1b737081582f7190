"""Published Core ML exports in a worker process of ``engine.coreml``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.engine.coreml.options import ENCODER_UNITS, CoremlOptions
from parakeet_live.engine.nemo.graph import Array
from parakeet_live.engine.nemo.network import NemoNetwork
from parakeet_models.coreml_runtime import Model, OpenModel, autorelease_pool
from parakeet_models.layouts import Layout
from parakeet_models.packages import ComputeUnits

KEPT_CALLS = 2
"""Core ML lets go of its inputs after ``predict`` has returned, on a thread of its own: so many calls later, surely."""


class CoremlGraph:
    """A Core ML model as a graph; one thread."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kept: deque[Mapping[str, Array]] = deque(maxlen=KEPT_CALLS)

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        self._kept.append(inputs)
        # A dictionary of its own: coremltools puts converted arrays into it. Copies, which live as long as we like.
        outputs = self._model.predict(dict(inputs))
        return {name: np.array(values) for name, values in outputs.items()}


class PublishedNetwork:
    """Runs steps one after the other; one thread."""

    def __init__(
        self,
        layout: Layout,
        slots: int,
        options: CoremlOptions,
        open_model: OpenModel,
        report: Callable[[str], None],
    ) -> None:
        """Load and test the models. Raises EngineError with the reason and the remedy."""
        units: dict[str, ComputeUnits] = {
            "encoder": options.encoder or ENCODER_UNITS,
            "prediction": options.prediction,
            "joint": options.joint,
        }

        def open_graph(part: str, path: Path) -> CoremlGraph:
            report(f"loading {path.name} on {units[part]}")
            return CoremlGraph(open_model(path, None, units[part]))

        with autorelease_pool():
            self._network = NemoNetwork(layout, slots, open_graph)

    @property
    def summary(self) -> str:
        return self._network.summary

    def step(self, step: StepInput, fresh: bool) -> list[Emission]:
        """One step of one stream; ``fresh`` if it is the first of another stream on the slot."""
        with autorelease_pool():
            return self._network.step(step, fresh)
