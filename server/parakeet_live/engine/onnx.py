"""The ONNX Runtime backend: slots in plain arrays, one single-threaded session, batches of any mixture."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import onnxruntime as ort

from parakeet_live.engine.backend import CapacityError, Emission, EngineError, StepInput
from parakeet_live.engine.caches import EncoderCaches, rows_of
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_models.bundle import Bundle, encoder_outputs
from parakeet_models.frames import valid_frames


def session_options() -> ort.SessionOptions:
    """One thread and no spinning: lanes, not threads inside an operator, are what fills the cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


class OnnxBackend:
    """Owns the state of every slot: the encoder's caches and the decoder's."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        if bundle.manifest.runtime != "onnx":
            raise EngineError(f"{bundle.manifest.name}: runtime {bundle.manifest.runtime!r} is not onnx")
        geometry = bundle.manifest.geometry
        options = session_options()
        self._encoder = ort.InferenceSession(
            str(bundle.path("encoder")), options, providers=["CPUExecutionProvider"]
        )
        self._decoder = GreedyDecoder(
            bundle.path("prediction"), bundle.path("joint"), options, geometry, bundle.manifest.tokens, slots
        )
        self._caches = EncoderCaches(geometry, slots)
        self._cache_names = [name.removeprefix("new_") for name in encoder_outputs(geometry.layers)[1:]]
        self._slots = slots
        self._free = list(range(slots))

    @property
    def slots(self) -> int:
        return self._slots

    def open(self) -> int:
        if not self._free:
            raise CapacityError(
                f"all {self._slots} slots are taken; close a stream or raise the number of slots"
            )
        # The lowest, so that the slots in use are neighbours.
        slot = heapq.heappop(self._free)
        self._caches.reset(slot)
        self._decoder.restart(slot)
        return slot

    def close(self, slot: int) -> None:
        heapq.heappush(self._free, slot)

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
        self._caches.write(slots, encoded.shape[1], dict(zip(self._cache_names, new, strict=True)))
        for step in inputs:
            if step.restart:
                self._decoder.restart(step.slot)
        return self._decoder.decode(slots, encoded, valid_frames(end))
