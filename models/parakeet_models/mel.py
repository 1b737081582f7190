"""Log-mel front end: constants and whole-signal computation (NeMo's ``AudioToMelSpectrogramPreprocessor``).

The values follow the model contract of Parakeet-EOU: pre-emphasis 0.97, symmetric Hann window of 25 ms in a
512-point FFT, hop 10 ms, power spectrum, Slaney mel bands with Slaney area normalisation, natural logarithm of
(x + 2^-24), no normalisation of any kind. Frame ``k`` is centred on sample ``160 k`` and, because the window is
zero outside its 400 taps, reads samples ``160 k - 200 <= n < 160 k + 200``; the signal is zero outside its ends.
The streaming twin of :func:`log_mel` is :class:`parakeet_live.audio.mel.StreamingMel`; both call
:func:`frames_to_log_mel`, so that there is one definition of the arithmetic.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

Float32 = NDArray[np.float32]

LOG_GUARD = np.float32(2.0**-24)
"""Added before the logarithm; digital silence becomes ln(2^-24) = -16.6355, so 0.0 is *loud*."""


class MelParameters(BaseModel):
    """Parameters of the front end, as a bundle's manifest states them. Lengths are in samples."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample_rate: int = Field(default=16_000, gt=0)
    bins: int = Field(default=128, gt=0)
    fft_length: int = Field(default=512, gt=0)
    hop_length: int = Field(default=160, gt=0)
    window_length: int = Field(default=400, gt=0)
    pre_emphasis: float = Field(default=0.97, ge=0.0, lt=1.0)


def hann_window(length: int) -> Float32:
    """Symmetric (not periodic) Hann window, float32[length]."""
    taps = np.arange(length, dtype=np.float64)
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * taps / (length - 1))).astype(np.float32)


def mel_filterbank(parameters: MelParameters) -> Float32:
    """Slaney-scale triangular filters with area normalisation, float32[fft_length/2 + 1, bins].

    Source: M. Slaney, "Auditory Toolbox" (1998): linear below 1 kHz, logarithmic above.
    """
    nyquist = parameters.sample_rate / 2

    def hertz_to_mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
        linear = hertz * 3.0 / 200.0
        logarithmic = 15.0 + 27.0 * np.log(np.maximum(hertz, 1e-9) / 1000.0) / np.log(6.4)
        return np.where(hertz < 1000.0, linear, logarithmic)

    def mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
        linear = mel * 200.0 / 3.0
        logarithmic = 1000.0 * np.exp(np.log(6.4) / 27.0 * (mel - 15.0))
        return np.where(mel < 15.0, linear, logarithmic)

    top = float(hertz_to_mel(np.array([nyquist]))[0])
    edges = mel_to_hertz(np.linspace(0.0, top, parameters.bins + 2))
    frequencies = np.linspace(0.0, nyquist, parameters.fft_length // 2 + 1)
    widths = np.diff(edges)
    ramps = edges[:, None] - frequencies[None, :]
    rising = -ramps[:-2] / widths[:-1, None]
    falling = ramps[2:] / widths[1:, None]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    area = 2.0 / (edges[2:] - edges[:-2])
    return np.ascontiguousarray((triangles * area[:, None]).T, dtype=np.float32)


@lru_cache(maxsize=8)
def _tables(parameters: MelParameters) -> tuple[Float32, Float32]:
    return hann_window(parameters.window_length), mel_filterbank(parameters)


def frames_to_log_mel(frames: Float32, parameters: MelParameters, block: int | None = None) -> Float32:
    """Log-mel of windows of pre-emphasised samples: float32[n, window_length] -> float32[n, bins].

    The FFT of the 400 windowed taps is taken without moving them to the middle of the 512 points: a shift in
    time changes only the phase, and only the power is used.

    ``block``: rows per matrix product (default: all at once). The last block is whole, the first takes what is left.
    A product may round differently for different numbers of rows, everything else is row by row.
    """
    window, filterbank = _tables(parameters)
    spectrum = np.fft.rfft(frames * window, parameters.fft_length, axis=-1)
    power = (spectrum.real * spectrum.real + spectrum.imag * spectrum.imag).astype(np.float32, copy=False)
    mel = np.empty((len(frames), filterbank.shape[1]), np.float32)
    end = len(frames)
    while end > 0:
        start = max(0, end - (block or end))
        np.matmul(power[start:end], filterbank, out=mel[start:end])
        end = start
    mel += LOG_GUARD
    return np.log(mel, out=mel)


def log_mel(samples: Float32, parameters: MelParameters) -> Float32:
    """Log-mel of a whole signal: float32[n] in [-1, 1] -> float32[n // hop_length, bins].

    A signal of n samples has ``n // hop_length`` valid frames (the declared length in NeMo).
    """
    hop, width = parameters.hop_length, parameters.window_length
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    count = len(samples) // hop
    if count == 0:
        return np.zeros((0, parameters.bins), np.float32)
    emphasised = samples.copy()
    emphasised[1:] -= np.float32(parameters.pre_emphasis) * samples[:-1]
    half = width // 2
    padded = np.concatenate([np.zeros(half, np.float32), emphasised, np.zeros(half, np.float32)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)[::hop][:count]
    return frames_to_log_mel(windows, parameters)
