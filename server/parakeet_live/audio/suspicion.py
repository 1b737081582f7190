"""Signs that bytes are not what was declared: their statistics look like another format.

Nothing is refused on suspicion, and no sample is changed: a client is warned while its session goes on. Speech leaves
little doubt, because neighbouring samples of it are alike (their correlation is above 0.5 at telephone rates, higher at
others), and those of misread bytes are not.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from parakeet_live.audio.formats import AudioFormat, Encoding

WINDOW_SECONDS = 0.5
"""Declared audio that is judged at once."""
WINDOWS = 3
"""Suspicious windows that make a suspicion."""
JUDGED = 60
"""Windows with sound after which a stream is trusted."""
SILENCE = 30.0
"""Standard deviation in 16-bit steps below which a window tells nothing."""
ALIKE, UNALIKE = 0.5, 0.25
"""Correlation of neighbouring samples from which they belong together, and up to which they do not."""
FLOAT_RANGE = (1e-6, 2.0)
"""Magnitudes of sound in floating point."""

_INT16 = np.dtype("<i2")
_FLOAT32 = np.dtype("<f4")


class Suspicion(StrEnum):
    """What the audio looks like."""

    FLOAT = "looks_like_float"
    INT16 = "looks_like_int16"
    BIG_ENDIAN = "looks_like_big_endian"
    STEREO = "looks_like_stereo"
    NOISE = "looks_like_noise"


class FormatWatch:
    """Judges the beginning of a stream of raw audio; each suspicion is told once."""

    def __init__(self, declared: AudioFormat) -> None:
        self._declared = declared
        # A multiple of eight bytes holds whole samples of every kind that it may be taken for.
        self._window = int(WINDOW_SECONDS * declared.sample_rate) * declared.bytes_per_frame // 8 * 8
        self._bytes = bytearray()
        self._left = JUDGED if declared.encoding in (Encoding.PCM_S16LE, Encoding.PCM_F32LE) else 0
        self._count: dict[Suspicion, int] = {}

    def look(self, frames: bytes) -> list[Suspicion]:
        """Whole frames of the stream, in order; returns what has become suspicious."""
        found: list[Suspicion] = []
        if not self._left:
            return found
        self._bytes += frames
        while self._left and len(self._bytes) >= self._window:
            window = bytes(self._bytes[: self._window])
            del self._bytes[: self._window]
            suspicion = self._judge(window)
            if suspicion:
                self._count[suspicion] = self._count.get(suspicion, 0) + 1
                if self._count[suspicion] == WINDOWS:
                    found.append(suspicion)
        if not self._left:
            self._bytes.clear()
        return found

    def _judge(self, window: bytes) -> Suspicion | None:
        if self._declared.encoding is Encoding.PCM_F32LE:
            return self._judge_float(np.frombuffer(window, _FLOAT32))
        samples = np.frombuffer(window, _INT16)
        if samples.std() < SILENCE:
            return None
        self._left -= 1
        if _is_float(np.frombuffer(window, _FLOAT32)):
            return Suspicion.FLOAT
        channels = self._declared.channels
        near, far = _correlation(samples, channels), _correlation(samples, 2 * channels)
        if near < UNALIKE:
            if _correlation(samples.byteswap(), channels) > ALIKE:
                return Suspicion.BIG_ENDIAN
            if far < UNALIKE:
                return Suspicion.NOISE
        if channels == 1 and ((far > ALIKE and far > near + UNALIKE) or _in_pairs(samples)):
            return Suspicion.STEREO
        return None

    def _judge_float(self, samples: NDArray[np.float32]) -> Suspicion | None:
        magnitude = np.abs(samples)
        if not np.count_nonzero(samples):
            return None
        self._left -= 1
        # Negated, so that what is no number counts as out of range.
        outside = ~(magnitude <= 4 * FLOAT_RANGE[1])
        return Suspicion.INT16 if outside.mean() > 0.05 else None


def _is_float(values: NDArray[np.float32]) -> bool:
    """True if nearly all bit patterns are numbers of the size of sound; of integers only constant ones are."""
    magnitude = np.abs(values)
    low, high = FLOAT_RANGE
    sound = (magnitude >= low) & (magnitude <= high)
    return bool(((magnitude == 0) | sound).mean() > 0.99 and sound.mean() > 0.5)


def _correlation(samples: NDArray[np.int16], distance: int) -> float:
    """Of samples so far apart: 1 for equal ones, 0 for unrelated ones."""
    values = samples.astype(np.float32)
    values -= values.mean()
    power = float(values @ values)
    return float(values[distance:] @ values[:-distance]) / power if power else 0.0


def _in_pairs(samples: NDArray[np.int16]) -> bool:
    """True if every sample comes twice, as in two channels of one microphone."""
    return bool((samples[0::2] == samples[1::2]).mean() > 0.99)
