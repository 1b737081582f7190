"""Batched greedy RNN-T decoding over slots.

Frame-synchronous over the batch; the prediction network runs only for rows that emitted, because its state changes
only then (Graves, 2012; the same tokens as NeMo's greedy search). One prediction step per token, one joint step per
frame and one more per token.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from parakeet_live.engine.backend import Emission
from parakeet_models.bundle import Geometry, TokenIds
from parakeet_models.mel import Float32

MAX_SYMBOLS_PER_FRAME = 10
"""After this many tokens on one frame, decoding moves to the next frame (NeMo's default)."""

MIN_ROWS = 2
"""Matrix products of one row use another kernel, which may round differently; padding to two rows keeps a
stream's result bit-equal alone and in any batch."""


class GreedyDecoder:
    """Owns the prediction-network state of every slot."""

    def __init__(
        self,
        prediction: Path,
        joint: Path,
        options: ort.SessionOptions,
        geometry: Geometry,
        tokens: TokenIds,
        slots: int,
    ) -> None:
        providers = ["CPUExecutionProvider"]
        self._prediction = ort.InferenceSession(str(prediction), options, providers=providers)
        self._joint = ort.InferenceSession(str(joint), options, providers=providers)
        self._blank = tokens.blank
        self._ends = {token for token in (tokens.eou, tokens.eob) if token is not None}
        self._h = np.zeros((slots, geometry.prediction_hidden), np.float32)
        self._c = np.zeros_like(self._h)
        self._predicted = np.zeros((slots, geometry.joint_hidden), np.float32)
        zero = np.zeros((1, geometry.prediction_hidden), np.float32)
        # The blank's embedding is zero: feeding it once from the zero state is NeMo's start of sequence.
        predicted, h, c = self._predict(np.array([self._blank]), zero, zero)
        self._start_predicted, self._start_h, self._start_c = predicted[0], h[0], c[0]

    def restart(self, slot: int) -> None:
        """Put a slot's prediction network at the start of sequence."""
        self._h[slot], self._c[slot] = self._start_h, self._start_c
        self._predicted[slot] = self._start_predicted

    def decode(
        self, slots: NDArray[np.int64], encoded: Float32, frames: NDArray[np.int64]
    ) -> list[list[Emission]]:
        """Decode encoded [B, n, joint_hidden] of ``slots`` [B]; row b has ``frames[b]`` valid frames.

        An end token (EOU, EOB) resets its row to the start of sequence and ends its frame: the next frame belongs
        to the next utterance.
        """
        emissions: list[list[Emission]] = [[] for _ in slots]
        for frame in range(encoded.shape[1]):
            rows = np.flatnonzero(frame < frames)
            for _ in range(MAX_SYMBOLS_PER_FRAME):
                if len(rows) == 0:
                    break
                token, probability = self._best(encoded[rows, frame], self._predicted[slots[rows]])
                emitted = token != self._blank
                rows, token, probability = rows[emitted], token[emitted], probability[emitted]
                for row, t, p in zip(rows.tolist(), token.tolist(), probability.tolist(), strict=True):
                    emissions[row].append(Emission(t, frame, p))
                ended = np.isin(token, list(self._ends))
                for slot in slots[rows[ended]].tolist():
                    self.restart(slot)
                rows, token = rows[~ended], token[~ended]
                if len(rows):
                    at = slots[rows]
                    self._predicted[at], self._h[at], self._c[at] = self._predict(
                        token, self._h[at], self._c[at]
                    )
        return emissions

    def _predict(self, token: NDArray[np.int64], h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        rows = len(token)
        token, h, c = _at_least(token), _at_least(h), _at_least(c)
        predicted, h, c = self._prediction.run(None, {"token": token, "h": h, "c": c})
        return predicted[:rows], h[:rows], c[:rows]

    def _best(self, encoded: Float32, predicted: Float32) -> tuple[NDArray[np.int64], Float32]:
        rows = len(encoded)
        inputs = {"encoder": _at_least(encoded), "prediction": _at_least(predicted)}
        token, probability = self._joint.run(None, inputs)
        return token[:rows], probability[:rows]


def _at_least(rows: NDArray[Any]) -> NDArray[Any]:
    """``rows`` repeated up to MIN_ROWS rows."""
    return rows if len(rows) >= MIN_ROWS else np.repeat(rows, MIN_ROWS, axis=0)
