"""Sounds that are no speech, float32[n] at 16 kHz, the same at every call. Levels are RMS in dB of full scale."""

from __future__ import annotations

import numpy as np

from parakeet_models.mel import Float32

RATE = 16_000


def silence(seconds: float) -> Float32:
    return np.zeros(round(seconds * RATE), np.float32)


def at_level(samples: Float32, dbfs: float) -> Float32:
    """``samples`` with this RMS."""
    rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    return samples * np.float32(10 ** (dbfs / 20) / rms)


def white_noise(seconds: float, dbfs: float, seed: int = 0) -> Float32:
    noise = np.random.default_rng(seed).standard_normal(round(seconds * RATE), dtype=np.float32)
    return noise * np.float32(10 ** (dbfs / 20))


def room_tone(seconds: float, dbfs: float = -60.0, seed: int = 1) -> Float32:
    """Noise whose power falls with frequency, as in a quiet room or from a fan."""
    count = round(seconds * RATE)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 20 * count / RATE))
    return at_level(np.fft.irfft(spectrum, count).astype(np.float32), dbfs)


def hold_music(seconds: float, dbfs: float = -25.0) -> Float32:
    """Plucked chords, three to a second and a half."""
    time = np.arange(round(seconds * RATE)) / RATE
    beat = 0.5
    phase = time % beat
    chord = np.array([0, 5, 7, 0])[(time // (3 * beat)).astype(int) % 4]
    music = np.zeros_like(time)
    for step in (0, 4, 7):
        tone = 220.0 * 2 ** ((step + chord) / 12)
        for harmonic, strength in ((1, 1.0), (2, 0.5), (3, 0.25)):
            music += strength * np.sin(2 * np.pi * tone * harmonic * phase)
    return at_level((music * np.exp(-4 * phase)).astype(np.float32), dbfs)


def babble(recordings: list[Float32], seconds: float, dbfs: float, voices: int = 8) -> Float32:
    """Many voices at once, none of which can be followed."""
    rng = np.random.default_rng(2)
    count = round(seconds * RATE)
    mixed = np.zeros(count, np.float32)
    for _ in range(voices):
        voice = np.concatenate([recordings[i] for i in rng.permutation(len(recordings))])
        voice = np.tile(voice, 2 + count // len(voice))
        start = int(rng.integers(len(voice) - count))
        mixed += at_level(voice[start : start + count], -30.0)
    return at_level(mixed, dbfs)
