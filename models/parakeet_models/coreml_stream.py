"""Runs our packages for streams: the buffers that a stream owns, and the ways in and out of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parakeet_models.bundle import Bundle, Geometry
from parakeet_models.coreml import cache_shapes
from parakeet_models.coreml_runtime import Model, OpenModel
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32
from parakeet_models.packages import ComputeUnits, State

COUNTERS = ("begin", "end", "valid")


class EncoderStream:
    """One stream through the encoder's functions: its caches or its state. One thread at a time.

    What a model is given lies in buffers that live as long as this object: Core ML lets go of its inputs after
    ``predict`` has returned, on a thread of its own.
    """

    def __init__(self, geometry: Geometry, state: State, encoders: Mapping[int, Model]) -> None:
        """``encoders``: a function for each step size, in encoder frames."""
        self._encoders = encoders
        self._left = geometry.attention_left
        self._counters = {name: np.zeros((1, 1, 1, 1), np.float32) for name in COUNTERS}
        self._mel = {
            frames: np.zeros((1, 1, SUBSAMPLING_FACTOR * frames + 1, geometry.mel_bins), np.float32)
            for frames in encoders
        }
        shapes = cache_shapes(geometry) if state == "explicit" else {}
        self._caches = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self._has_state = state == "mlstate"
        self._state: Any = None
        self.reset()

    def reset(self) -> None:
        """The start of another stream."""
        for cache in self._caches.values():
            cache.fill(0.0)
        self._counters["valid"].fill(0.0)
        if self._has_state:
            self._state = next(iter(self._encoders.values())).make_state()

    def step(self, mel: Float32, begin: int, end: int) -> Float32:
        """One step of n encoder frames: mel float32[8n + 1, bins], other arguments as in docs/coreml.md.

        Returns float32[n, joint_hidden], ``joint.enc`` of the frames.
        """
        frames = (len(mel) - 1) // SUBSAMPLING_FACTOR
        np.copyto(self._mel[frames][0, 0], mel)
        self._counters["begin"].fill(begin)
        self._counters["end"].fill(end)
        # A dictionary of its own for every call: coremltools puts converted arrays into it.
        inputs = {"mel": self._mel[frames], **self._counters, **self._caches}
        outputs = self._encoders[frames].predict(inputs, self._state)
        for name, cache in self._caches.items():
            np.copyto(cache, outputs[f"new_{name}"])  # whatever its type and its strides
        valid = self._counters["valid"]
        valid.fill(min(int(valid.item()) + frames, self._left))
        return np.ascontiguousarray(outputs["encoded"][0, :, 0].T, np.float32)


class DecoderModels:
    """Prediction network and joint of our packages, one row a call."""

    look_ahead = 1

    def __init__(self, geometry: Geometry, prediction: Model, joint: Model) -> None:
        self._prediction, self._joint = prediction, joint
        self._token = np.zeros(1, np.int32)
        self._state = {name: np.zeros((1, geometry.prediction_hidden), np.float32) for name in ("h", "c")}
        self._joint_inputs = {
            name: np.zeros((1, geometry.joint_hidden), np.float32) for name in ("encoder", "prediction")
        }

    def predict(self, token: NDArray[np.int64], h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        """token [R]; h, c [R, prediction_hidden] -> prediction [R, joint_hidden], new h, new c."""
        rows = [self._predict(*row) for row in zip(token, h, c, strict=True)]
        predicted, h, c = (np.stack(parts) for parts in zip(*rows, strict=True))
        return predicted, h, c

    def best(self, encoded: Float32, predicted: Float32) -> tuple[NDArray[np.int64], Float32]:
        """encoded, predicted [R, joint_hidden] -> best token of each row, its probability."""
        rows = [self._best(*row) for row in zip(encoded, predicted, strict=True)]
        return np.array([token for token, _ in rows], np.int64), np.array([p for _, p in rows], np.float32)

    def _predict(self, token: int, h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        self._token[0] = token
        self._state["h"][0], self._state["c"][0] = h, c
        found = self._prediction.predict({"token": self._token, **self._state})
        prediction, h, c = (np.array(found[name][0], np.float32) for name in ("prediction", "new_h", "new_c"))
        return prediction, h, c

    def _best(self, encoded: Float32, predicted: Float32) -> tuple[int, float]:
        self._joint_inputs["encoder"][0], self._joint_inputs["prediction"][0] = encoded, predicted
        found = self._joint.predict(dict(self._joint_inputs))
        return int(found["token"][0]), float(found["probability"][0])


def open_encoders(bundle: Bundle, open_model: OpenModel, units: ComputeUnits) -> dict[int, Model]:
    """The encoder's functions by step size, smallest first."""
    packages = bundle.packages
    return {
        encoder.frames: open_model(bundle.directory / encoder.package, encoder.function, units)
        for encoder in packages.encoder
    }


def open_decoder(
    bundle: Bundle, open_model: OpenModel, prediction: ComputeUnits, joint: ComputeUnits
) -> DecoderModels:
    """Prediction network and joint."""
    packages = bundle.packages
    return DecoderModels(
        bundle.manifest.geometry,
        open_model(bundle.directory / packages.prediction, None, prediction),
        open_model(bundle.directory / packages.joint, None, joint),
    )
