"""The ONNX Runtime backend: slots in plain arrays, one single-threaded session, batches of any mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.caches import EncoderCaches, rows_of
from parakeet_live.engine.cores import usable_cores
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_live.engine.huge_pages import use_huge_pages
from parakeet_live.engine.slots import FreeSlots
from parakeet_models.bundle import Bundle, Geometry, encoder_outputs
from parakeet_models.frames import valid_frames
from parakeet_models.mel import Float32

MAX_BATCH = 16
"""Steps in one batch. Larger ones gain nothing on a CPU core and make everyone wait longer (docs/performance.md)."""
MAX_SMALL_BATCH = 48
"""The same for a small network, whose batch takes less time than the threads need to take turns in Python: with 16,
200 streams of the embedded model lagged by a second, with 48 text comes within 0.2 s."""
SMALL_NETWORK = 1_000_000
"""Layers times d_model squared below which a network is small; the full size has 4.5 million."""

MIN_ROWS = 2
"""Matrix products of one row use another kernel, which may round differently; padding to two rows keeps a
stream's result bit-equal alone and in any batch."""

PROVIDERS = ["CPUExecutionProvider"]


def best_batch(geometry: Geometry) -> int:
    """The most steps in one batch for a network of this size."""
    small = geometry.layers * geometry.d_model**2 < SMALL_NETWORK
    return MAX_SMALL_BATCH if small else MAX_BATCH


def session_options() -> ort.SessionOptions:
    """One thread and no spinning: lanes, not threads inside an operator, are what fills the cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


class OnnxDecoderNetworks:
    """Prediction network and joint, in batches of any size."""

    look_ahead = 2

    def __init__(self, bundle: Bundle, options: ort.SessionOptions) -> None:
        self._prediction = ort.InferenceSession(str(bundle.path("prediction")), options, providers=PROVIDERS)
        self._joint = ort.InferenceSession(str(bundle.path("joint")), options, providers=PROVIDERS)

    def predict(self, token: NDArray[np.int64], h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        rows = len(token)
        inputs = {"token": _at_least(token), "h": _at_least(h), "c": _at_least(c)}
        predicted, h, c = self._prediction.run(None, inputs)
        return predicted[:rows], h[:rows], c[:rows]

    def best(self, encoded: Float32, predicted: Float32) -> tuple[NDArray[np.int64], Float32]:
        rows = len(encoded)
        inputs = {"encoder": _at_least(encoded), "prediction": _at_least(predicted)}
        token, probability = self._joint.run(None, inputs)
        return token[:rows], probability[:rows]


def _at_least(rows: NDArray[Any]) -> NDArray[Any]:
    """``rows`` repeated up to MIN_ROWS rows."""
    return rows if len(rows) >= MIN_ROWS else np.repeat(rows, MIN_ROWS, axis=0)


class OnnxBackend:
    """Owns the state of every slot: the encoder's caches and the decoder's."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        if bundle.manifest.runtime != "onnx":
            raise EngineError(f"{bundle.manifest.name}: runtime {bundle.manifest.runtime!r} is not onnx")
        geometry = bundle.manifest.geometry
        options = session_options()
        self._encoder = ort.InferenceSession(str(bundle.path("encoder")), options, providers=PROVIDERS)
        networks = OnnxDecoderNetworks(bundle, options)
        use_huge_pages()
        try:
            self._decoder = GreedyDecoder(networks, geometry, bundle.manifest.tokens, slots)
            self._caches = EncoderCaches(geometry, slots)
        except MemoryError as error:
            raise EngineError(
                f"no memory for {slots} streams ({error}); lower the setting max_streams"
            ) from error
        self._cache_names = [name.removeprefix("new_") for name in encoder_outputs(geometry.layers)[1:]]
        self._slots = FreeSlots(slots)
        self._best_batch = best_batch(geometry)

    @property
    def slots(self) -> int:
        return self._slots.total

    @property
    def best_batch(self) -> int:
        return self._best_batch

    @property
    def lanes(self) -> int:
        return usable_cores()

    def home_of(self, slot: int) -> None:
        """Every lane runs every slot."""

    def open(self) -> int:
        slot = self._slots.take()
        self._caches.reset(slot)
        self._decoder.restart(slot)
        return slot

    def close(self, slot: int) -> None:
        self._slots.give(slot)

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        results: list[list[Emission]] = [[] for _ in inputs]
        for size in sorted({step.frames for step in inputs}):
            rows = [row for row, step in enumerate(inputs) if step.frames == size]
            rows.sort(key=lambda row: inputs[row].slot)
            for row, emissions in zip(rows, self._step_equal([inputs[row] for row in rows]), strict=True):
                results[row] = emissions
        return results

    def _step_equal(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        """Steps of one size and of ascending slots, one batch."""
        slots = np.array([step.slot for step in inputs], np.int64)
        end = np.array([step.end for step in inputs], np.int64)
        feed = self._caches.read(rows_of(slots)) | {
            "mel": np.stack([step.mel for step in inputs]),
            "begin": np.array([step.begin for step in inputs], np.int64),
            "end": end,
        }
        encoded, *new = self._encoder.run(None, feed)
        self._caches.write(slots, dict(zip(self._cache_names, new, strict=True)))
        for step in inputs:
            if step.restart:
                self._decoder.restart(step.slot)
        return self._decoder.decode(slots, encoded, valid_frames(end))

    def shut_down(self) -> None:
        """Nothing outlives the object."""
