"""Sounds the random networks are calibrated on: something with the rhythm and spectrum of speech, and silence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parakeet_models.mel import Float32

RATE = 16_000
MAX_HARMONIC_HZ = 4_000
ROOM_NOISE = 0.001
"""Amplitude (-60 dB of full scale) of the noise under the speech and in the quiet signal."""


def speech_like(seconds: float, seed: int) -> Float32:
    """float32[n] at 16 kHz: voiced and unvoiced syllables with moving formants, in phrases with short pauses."""
    rng = np.random.default_rng(seed)
    count = int(seconds * RATE)
    samples = rng.standard_normal(count) * ROOM_NOISE
    at = 0
    while at < count:
        for _ in range(rng.integers(6, 16)):
            length = int(rng.uniform(0.12, 0.28) * RATE)
            syllable = _syllable(rng, length)[: max(0, count - at)]
            samples[at : at + len(syllable)] += syllable
            at += length
        at += int(rng.uniform(0.25, 0.7) * RATE)
    return samples.astype(np.float32)


def quiet(seconds: float, seed: int) -> Float32:
    """float32[n] at 16 kHz: digital silence, then room noise, half of the time each."""
    samples = np.random.default_rng(seed).standard_normal(int(seconds * RATE)) * ROOM_NOISE
    samples[: len(samples) // 2] = 0.0
    return samples.astype(np.float32)


def _syllable(rng: np.random.Generator, length: int) -> NDArray[np.float64]:
    """float64[length]: a burst of noise (a consonant), then a voice with three formants (a vowel)."""
    time = np.arange(length) / RATE
    onset = length // 4
    consonant = rng.standard_normal(length) * 0.05 * rng.uniform(0.2, 1.0)
    consonant[onset:] *= np.exp(-np.arange(length - onset) / (0.01 * RATE))
    pitch = rng.uniform(90, 220) * (1.0 + 0.1 * rng.uniform(-1, 1) * time / time[-1])
    phase = 2.0 * np.pi * np.cumsum(pitch) / RATE
    harmonics = np.arange(1, int(MAX_HARMONIC_HZ / pitch.max()) + 1)
    frequency = harmonics * pitch.mean()
    formants = rng.uniform((250, 800, 2200), (850, 2200, 3300))
    gains = sum(
        gain * np.exp(-(((frequency - formant) / 150.0) ** 2))
        for gain, formant in zip((1.0, 0.5, 0.25), formants, strict=True)
    )
    voice = np.sin(harmonics[:, None] * phase[None]) * (gains + 0.02)[:, None]
    envelope = np.zeros(length)
    envelope[onset:] = np.hanning(length - onset)
    return consonant + voice.sum(0) * envelope * rng.uniform(0.05, 0.2)
