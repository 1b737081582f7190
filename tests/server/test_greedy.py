"""The batched decoder against the textbook loop, frame by frame and row by row."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from parakeet_live.engine.backend import Emission
from parakeet_live.engine.greedy import MAX_SYMBOLS_PER_FRAME, GreedyDecoder
from parakeet_live.engine.onnx import OnnxDecoderNetworks, session_options
from parakeet_models.bundle import Bundle

ROWS = 5


class TextbookDecoder:
    """One stream: ask the joint, emit, step the prediction network, until blank; then the next frame."""

    def __init__(self, bundle: Bundle) -> None:
        self._joint = ort.InferenceSession(str(bundle.path("joint")))
        self._prediction = ort.InferenceSession(str(bundle.path("prediction")))
        self._tokens = bundle.manifest.tokens
        self._restart()

    def _restart(self) -> None:
        shape = (1, self._prediction.get_inputs()[1].shape[1])
        self._state = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._step(self._tokens.blank)

    def _step(self, token: int) -> None:
        h, c = self._state
        self._predicted, h, c = self._prediction.run(None, {"token": np.array([token]), "h": h, "c": c})
        self._state = h, c

    def decode(self, encoded: np.ndarray) -> list[Emission]:
        emissions = []
        for index, frame in enumerate(encoded):
            for _ in range(MAX_SYMBOLS_PER_FRAME):
                inputs = {"encoder": frame[None], "prediction": self._predicted}
                token, probability = (output[0] for output in self._joint.run(None, inputs))
                if token == self._tokens.blank:
                    break
                emissions.append(Emission(int(token), index, float(probability)))
                if token in (self._tokens.eou, self._tokens.eob):
                    self._restart()
                    break
                self._step(int(token))
        return emissions


@pytest.mark.parametrize("scale", [0.5, 1.5, 4.0])
def test_equals_the_textbook_loop(random_graphs: Bundle, scale: float) -> None:
    manifest = random_graphs.manifest
    networks = OnnxDecoderNetworks(random_graphs, session_options())
    decoder = GreedyDecoder(networks, manifest.geometry, manifest.tokens, ROWS)
    textbooks = [TextbookDecoder(random_graphs) for _ in range(ROWS)]
    for slot in range(ROWS):
        decoder.restart(slot)
    rng = np.random.default_rng(int(scale * 10))
    tokens, full_frames, ends = 0, 0, 0
    for _ in range(120):
        slots = rng.permutation(ROWS)[: rng.integers(1, ROWS + 1)]
        count = int(rng.choice([2, 4, 16]))
        shape = (len(slots), count, manifest.geometry.joint_hidden)
        encoded = (rng.standard_normal(shape) * scale).astype(np.float32)
        frames = rng.integers(0, count + 1, len(slots))
        found = decoder.decode(slots, encoded, frames)
        for slot, row, valid, emissions in zip(slots, encoded, frames, found, strict=True):
            expected = textbooks[slot].decode(row[:valid])
            assert [(e.token, e.frame) for e in emissions] == [(e.token, e.frame) for e in expected]
            assert [e.probability for e in emissions] == pytest.approx(
                [e.probability for e in expected], abs=1e-5
            )
            per_frame = np.bincount([e.frame for e in emissions], minlength=1)
            full_frames += int((per_frame == MAX_SYMBOLS_PER_FRAME).sum())
            ends += sum(e.token == manifest.tokens.eou for e in emissions)
            tokens += len(emissions)
    assert tokens > 200
    assert ends > 5
    if scale == 4.0:
        assert full_frames > 0, "the limit of symbols per frame must have been met"
