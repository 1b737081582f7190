"""The ONNX Runtime backend: slots in plain arrays, one single-threaded session, batches of any mixture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from parakeet_live.engine.backend import CapacityError, Emission, EngineError, StepInput
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_models.bundle import Bundle
from parakeet_models.mel import Float32


def session_options() -> ort.SessionOptions:
    """One thread and no spinning: lanes, not threads inside an operator, are what fills the cores."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


class OnnxBackend:
    """Owns the caches of every slot: attention rings, convolution and subsampling caches, decoder state."""

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
        self._geometry = geometry
        self._slots = slots
        self._free = list(reversed(range(slots)))
        left, size = geometry.attention_left, geometry.head_size
        conv = (slots, geometry.conv_kernel - 1, geometry.d_model)
        width1, width2 = geometry.stage_widths
        channels = geometry.subsampling_channels
        self._keys = [
            np.zeros((slots, geometry.heads, size, left), np.float32) for _ in range(geometry.layers)
        ]
        self._values = [
            np.zeros((slots, geometry.heads, left, size), np.float32) for _ in range(geometry.layers)
        ]
        self._conv = [np.zeros(conv, np.float32) for _ in range(geometry.layers)]
        self._stage1 = np.zeros((slots, channels, 1, width1), np.float32)
        self._stage2 = np.zeros((slots, channels, 1, width2), np.float32)
        self._position = np.zeros(slots, np.int64)
        self._valid = np.zeros(slots, np.int64)

    @property
    def slots(self) -> int:
        return self._slots

    def open(self) -> int:
        if not self._free:
            raise CapacityError(
                f"all {self._slots} slots are taken; close a stream or raise the number of slots"
            )
        slot = self._free.pop()
        for cache in (*self._keys, *self._values, *self._conv, self._stage1, self._stage2):
            cache[slot] = 0.0
        self._position[slot] = self._valid[slot] = 0
        self._decoder.restart(slot)
        return slot

    def close(self, slot: int) -> None:
        self._free.append(slot)

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        results: list[list[Emission]] = [[] for _ in inputs]
        for size in sorted({step.frames for step in inputs}):
            rows = [row for row, step in enumerate(inputs) if step.frames == size]
            for row, emissions in zip(rows, self._step_equal([inputs[row] for row in rows]), strict=True):
                results[row] = emissions
        return results

    def _step_equal(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        """Steps of one size, one batch."""
        slots = np.array([step.slot for step in inputs], np.int64)
        begin = np.array([step.begin for step in inputs], np.int64)
        end = np.array([step.end for step in inputs], np.int64)
        feed: dict[str, NDArray[np.float32] | NDArray[np.int64]] = {
            "mel": np.stack([step.mel for step in inputs]),
            "begin": begin,
            "end": end,
            "position": self._position[slots],
            "valid": self._valid[slots],
            "stage1": self._stage1[slots],
            "stage2": self._stage2[slots],
        }
        for layer in range(self._geometry.layers):
            feed[f"key_{layer}"] = self._keys[layer][slots]
            feed[f"value_{layer}"] = self._values[layer][slots]
            feed[f"conv_{layer}"] = self._conv[layer][slots]
        encoded, *caches = self._encoder.run(None, feed)
        self._store(slots, encoded.shape[1], caches)
        for step in inputs:
            if step.restart:
                self._decoder.restart(step.slot)
        valid_frames = ((end // 2 + 1) // 2 + 1) // 2
        return self._decoder.decode(slots, encoded, valid_frames)

    def _store(self, slots: NDArray[np.int64], frames: int, caches: list[Float32]) -> None:
        """Write a step's new cache rows into the rings and advance them."""
        layers, left = self._geometry.layers, self._geometry.attention_left
        stage1, stage2 = caches[0], caches[1]
        keys, values, conv = (caches[2 + i * layers : 2 + (i + 1) * layers] for i in range(3))
        self._stage1[slots], self._stage2[slots] = stage1, stage2
        kept = min(frames, left)
        places = (self._position[slots][:, None] + np.arange(frames - kept, frames)) % left
        for layer in range(layers):
            # Advanced indices on both sides of a slice put their axes first, hence the moved frame axis.
            self._keys[layer][slots[:, None], :, :, places] = np.moveaxis(keys[layer][..., -kept:], 3, 1)
            self._values[layer][slots[:, None], :, places] = np.moveaxis(values[layer][:, :, -kept:], 2, 1)
            self._conv[layer][slots] = conv[layer]
        self._position[slots] = (self._position[slots] + frames) % left
        self._valid[slots] = np.minimum(self._valid[slots] + frames, left)
