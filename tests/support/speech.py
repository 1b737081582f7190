"""Real speech for tests of whole sessions: a few recordings with pauses between them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import soxr

AUDIO = Path(__file__).parents[1] / "data" / "audio"
NAMES = (
    "fsdd_jackson_7_0",
    "fsddstr_george_22",
    "fsddstr_jackson_00",
    "fsddstr_george_15",
    "fsddstr_jackson_10",
)
PAUSE_SECONDS = 1.2


@cache
def spoken_pcm(count: int = 3, first: int = 0) -> bytes:
    """``count`` recordings of spoken digits, 16-bit at 16 kHz, each followed by a pause; ``first`` picks others."""
    parts = []
    for number in range(first, first + count):
        samples, rate = soundfile.read(AUDIO / f"{NAMES[number % len(NAMES)]}.flac", dtype="float32")
        parts += [soxr.resample(samples, rate, 16_000), np.zeros(int(PAUSE_SECONDS * 16_000), np.float32)]
    return (np.concatenate(parts) * 32767).astype("<i2").tobytes()
