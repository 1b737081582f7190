"""The network of a published layout with the state of every slot; one step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_live.engine.nemo.decoder import open_networks
from parakeet_live.engine.nemo.encoder import SILENCE, EncoderMemory, WindowedEncoder
from parakeet_live.engine.nemo.graph import Graph
from parakeet_live.engine.nemo.selftest import check_cadence, equal_sizes
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts import Layout

OpenGraph = Callable[[str, Path], Graph]
"""Loads a graph of a layout, by its part (``encoder``, ``prediction``, ``joint``) and its path."""

MEASURED_STEPS = 3


class NemoNetwork:
    """Steps of different slots may run on several threads if the graphs may."""

    def __init__(self, layout: Layout, slots: int, open_graph: OpenGraph) -> None:
        """Load the graphs and test them.

        Raises:
            EngineError: they do not run, or cannot be streamed exactly; with the reason and the remedy.
        """
        self._encoder = WindowedEncoder(layout, open_graph("encoder", layout.encoder.path))
        check_cadence(layout, self._encoder)
        self._encoder.sizes = equal_sizes(layout, self._encoder)
        self._decoder = _open_decoder(layout, slots, open_graph)
        self._memories: dict[int, EncoderMemory] = {}
        self.summary = self._measure(layout)
        """How fast the encoder is, for people."""

    def step(self, step: StepInput, fresh: bool) -> list[Emission]:
        """One step of one stream; ``fresh`` if it is the first of another stream on the slot."""
        if fresh:
            self._memories[step.slot] = self._encoder.begin()
        if fresh or step.restart:
            self._decoder.restart(step.slot)
        encoded = self._encoder.step(step, self._memories[step.slot])
        return self._decoder.decode(np.array([step.slot]), encoded[None], np.array([len(encoded)]))[0]

    def forget(self, slot: int) -> None:
        """The stream on a slot is over: its memory is free again."""
        self._memories.pop(slot, None)

    def _measure(self, layout: Layout) -> str:
        """Time a few steps of a stream that nobody hears."""
        mel = np.full((SUBSAMPLING_FACTOR * layout.hop + 1, layout.mel.bins), SILENCE, np.float32)
        step, memory = StepInput(0, mel, begin=0, end=len(mel)), self._encoder.begin()
        best = np.inf
        for _ in range(MEASURED_STEPS):
            started = time.perf_counter()
            self._encoder.step(step, memory)
            best = min(best, time.perf_counter() - started)
        seconds = SUBSAMPLING_FACTOR * layout.hop * layout.mel.hop_length / layout.mel.sample_rate
        return f"{layout.hop} frames in {1000 * best:.1f} ms ({seconds / best:.0f} x real time)"


def _open_decoder(layout: Layout, slots: int, open_graph: OpenGraph) -> GreedyDecoder:
    """Prediction network and joint, after one token and one frame. Raises EngineError if they do not fit."""
    networks = open_networks(layout, open_graph)
    frame = np.zeros((1, layout.encoder.ports.d_model or 0), np.float32)
    try:
        decoder = GreedyDecoder(networks, networks, layout.tokens, slots)
        token, _ = networks.best(frame, np.zeros((1, networks.joint_hidden), np.float32))
        if token[0] > layout.tokens.blank:
            raise ValueError(f"token {token[0]}, the vocabulary ends with {layout.tokens.blank}")
    except Exception as error:  # whatever its runtime raises for arrays that it does not take
        raise EngineError(
            f"{layout.directory}: encoder, prediction network, joint and vocabulary do not fit each other ({error}); "
            "the files are of different models: download all of them again"
        ) from error
    return decoder
