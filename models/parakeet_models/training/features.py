"""Log-mel as at run time, with two distortions that only training uses.

`log_mel` here gives what `parakeet_models.mel.log_mel` gives when the warp is 1 (a test says so); a warp other
than 1 moves the formants as a longer or shorter vocal tract would (VTLP: Jaitly & Hinton, 2013), which makes new
speakers out of few.
"""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy.fft

from parakeet_models.mel import LOG_GUARD, MelParameters, hann_window, mel_filterbank

from .clips import SAMPLE_RATE, Samples

Mel = npt.NDArray[np.float32]
"""float32[frames, bins]"""

MEL = MelParameters(bins=80)
"""80 bands instead of the 120M model's 128: three eighths less work in the subsampling."""

_WARP_STEPS = 100


@lru_cache(maxsize=256)
def _warped_filterbank(step: int, band_hz: int) -> Mel:
    """float32[fft/2+1, bins] that reads the spectrum at `step / _WARP_STEPS` times the frequency.

    Linear up to 80 % of the band, then bent so that `band_hz` stays where it is: the edge of a telephone band
    belongs to the line, not to the speaker.
    """
    bank = mel_filterbank(MEL)
    if step == _WARP_STEPS:
        return bank
    warp = step / _WARP_STEPS
    bins = MEL.fft_length // 2 + 1
    frequency = np.arange(bins) * SAMPLE_RATE / MEL.fft_length
    knee = 0.8 * band_hz * min(1.0, 1.0 / warp)
    bent = warp * knee + (frequency - knee) * (band_hz - warp * knee) / (band_hz - knee)
    source = np.where(frequency <= knee, frequency * warp, np.where(frequency <= band_hz, bent, frequency))
    position = source * MEL.fft_length / SAMPLE_RATE
    low = np.clip(position.astype(int), 0, bins - 2)
    share = position - low
    reading = np.zeros((bins, bins), np.float32)
    reading[low, np.arange(bins)] = 1 - share
    reading[low + 1, np.arange(bins)] += share
    return np.asarray(reading @ bank, np.float32)


def log_mel(samples: Samples, warp: float = 1.0, band_hz: int = 8000) -> Mel:
    """Samples float32[n] → log-mel float32[n // 160, 80]; formants divided by `warp`."""
    hop, width = MEL.hop_length, MEL.window_length
    frames = len(samples) // hop
    emphasised = samples.astype(np.float32, copy=True)
    emphasised[1:] -= np.float32(MEL.pre_emphasis) * samples[:-1]
    padded = np.pad(emphasised, width // 2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)[::hop][:frames]
    spectrum = scipy.fft.rfft(windows * hann_window(width), MEL.fft_length, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    bank = _warped_filterbank(round(warp * _WARP_STEPS), band_hz)
    return np.asarray(np.log(power @ bank + LOG_GUARD), np.float32)


def mask_bands(mel: Mel, rng: random.Random) -> Mel:
    """SpecAugment (Park et al., 2019), light: digits are short, long time masks would erase them."""
    masked = mel.copy()
    frames, bins = mel.shape
    fill = mel.mean(axis=0)
    for _ in range(2):
        width = rng.randrange(0, 14)
        start = rng.randrange(0, bins - width)
        masked[:, start : start + width] = fill[start : start + width]
    for _ in range(1 + frames // 300):
        width = rng.randrange(0, 9)
        start = rng.randrange(0, max(1, frames - width))
        masked[start : start + width] = fill
    return masked
