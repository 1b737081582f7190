"""Continuous sample-rate conversion to 16 kHz: exact lengths, and the same bits however the audio is cut."""

from __future__ import annotations

import numpy as np
import soxr

from parakeet_live.audio.formats import TARGET_RATE
from parakeet_models.mel import Float32

_EMPTY = np.zeros(0, np.float32)


class Resampler:
    """Mono float32 at ``rate`` in, mono float32 at 16 kHz out.

    soxr is fed in blocks of exactly 10 ms, whatever the caller's pieces are, so that its arithmetic, and with
    it every bit of the output, cannot depend on how the audio was cut. soxr's filter keeps audio back until
    :meth:`flush`: measured, at most 30 ms at 8 kHz, 85 ms at 11.025 kHz, 40 ms at 22.05 to 48 kHz, 80 ms at
    96 kHz and above.
    The output may pass +-1.0 slightly (overshoot of the filter); it is not clipped.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._block = rate // 100
        self._stream = self._new_stream()
        self._pending = _EMPTY
        self._taken = 0
        self._given = 0

    def _new_stream(self) -> soxr.ResampleStream:
        # Telephone audio: soxr's variable-rate filter works without the FFT blocks that would keep 115 ms back,
        # and equals the other within 1e-4 where the ratio is exactly two. At other ratios it does not.
        variable = 2 * self._rate == TARGET_RATE
        return soxr.ResampleStream(self._rate, TARGET_RATE, 1, dtype="float32", quality="HQ", vr=variable)

    def push(self, samples: Float32) -> Float32:
        """float32[n] at ``rate`` -> float32[m] at 16 kHz, what is ready of it."""
        self._taken += len(samples)
        pending = np.concatenate([self._pending, samples])
        whole = len(pending) // self._block * self._block
        out = [
            self._stream.resample_chunk(pending[start : start + self._block])
            for start in range(0, whole, self._block)
        ]
        self._pending = pending[whole:]
        return self._count(np.concatenate(out) if out else _EMPTY)

    def flush(self) -> Float32:
        """Everything kept back -> float32[m]; the filter starts afresh with the next sample.

        Afterwards exactly round(n * 16000 / rate) samples have come out for n taken in, so that word times
        never drift however often a stream is flushed: soxr's own rounding is corrected by at most a sample.
        """
        tail = self._stream.resample_chunk(self._pending, last=True)
        self._stream = self._new_stream()
        self._pending = _EMPTY
        due = (self._taken * TARGET_RATE + self._rate // 2) // self._rate - self._given
        if len(tail) < due:
            tail = np.pad(tail, (0, due - len(tail)))
        return self._count(tail[:due])

    def _count(self, out: Float32) -> Float32:
        self._given += len(out)
        return out
