"""What a telephone line does to sound: 300 to 3400 Hz, 8 kHz, eight bits of mu-law, and back to 16 kHz."""

from __future__ import annotations

import numpy as np
import soxr

from parakeet_live.audio.files import RATE
from parakeet_live.audio.formats import AudioFormat, Encoding, to_mono
from parakeet_live.evaluation.endpointing.sounds import Float64, filtered
from parakeet_models.mel import Float32

LINE_RATE = 8_000
BAND_HZ = (300.0, 3400.0)
EDGE_HZ = 100.0
"""Width over which the band's edges rise from nothing to everything."""

_VALUES = to_mono(bytes(range(256)), AudioFormat(Encoding.MULAW, LINE_RATE))
_ORDER = np.argsort(_VALUES, kind="stable")
_BETWEEN = (_VALUES[_ORDER][1:] + _VALUES[_ORDER][:-1]) / 2
"""Halfway between neighbouring values of the code: float32[255]."""


def encode_mulaw(samples: Float32) -> bytes:
    """float32[n] in [-1, 1] -> n bytes of ITU-T G.711 mu-law, each the code of the nearest value."""
    return _ORDER[np.searchsorted(_BETWEEN, samples)].astype(np.uint8).tobytes()


def through_telephone(samples: Float32) -> Float32:
    """float32[n] at 16 kHz -> float32[n] at 16 kHz as the other end of a call hears it."""
    band = filtered(samples.astype(np.float64), _band_gain).astype(np.float32)
    line = encode_mulaw(soxr.resample(band, RATE, LINE_RATE))
    heard = soxr.resample(to_mono(line, AudioFormat(Encoding.MULAW, LINE_RATE)), LINE_RATE, RATE)
    result = np.zeros(len(samples), np.float32)
    count = min(len(samples), len(heard))
    result[:count] = heard[:count]
    return result


def _band_gain(frequency: Float64) -> Float64:
    low, high = BAND_HZ
    return np.clip((frequency - low) / EDGE_HZ + 1, 0, 1) * np.clip((high - frequency) / EDGE_HZ + 1, 0, 1)
