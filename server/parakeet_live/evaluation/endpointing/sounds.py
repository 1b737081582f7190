"""What is heard besides speech: noise, room tone, hold music, a keyboard. Generated, so that anyone can make the same.

Every function returns float32[n] at 16 kHz with a root mean square of 1, from the generator it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from parakeet_live.audio.files import RATE
from parakeet_models.mel import Float32

Float64 = NDArray[np.float64]

FFT_BLOCK = 1 << 14
"""Lengths of transforms are multiples of this: one with a large prime factor takes ten times as long."""
SCALE = (0, 2, 4, 5, 7, 9, 11)
"""Semitones of a major scale."""
PROGRESSION = (0, 5, 3, 4)
"""Degrees of the chords, one a bar: I, vi, IV, V."""


class Sound(StrEnum):
    """The sounds that streams are made with."""

    WHITE = "white"
    PINK = "pink"
    ROOM = "room"
    MUSIC = "music"
    KEYBOARD = "keyboard"


def make_sound(sound: Sound, count: int, rng: np.random.Generator) -> Float32:
    """``count`` samples of a sound."""
    if count == 0:
        return np.zeros(0, np.float32)
    samples = _MAKERS[sound](count, rng)
    return np.asarray(samples / np.sqrt(np.mean(samples**2)), np.float32)


def filtered(samples: Float64, gain: Callable[[Float64], Float64]) -> Float64:
    """float64[n] with its spectrum multiplied by ``gain`` of the frequency in Hz."""
    size = -(-len(samples) // FFT_BLOCK) * FFT_BLOCK
    spectrum = np.fft.rfft(samples, size)
    return np.fft.irfft(spectrum * gain(np.fft.rfftfreq(size, 1 / RATE).astype(np.float64)), size)[
        : len(samples)
    ]


def _shaped(count: int, rng: np.random.Generator, gain: Callable[[Float64], Float64]) -> Float64:
    """Gaussian noise with a spectrum: ``gain`` maps frequencies in Hz to amplitudes."""
    return filtered(rng.standard_normal(count), gain)


def _white(count: int, rng: np.random.Generator) -> Float64:
    return rng.standard_normal(count)


def _pink(count: int, rng: np.random.Generator) -> Float64:
    """The same power in every octave."""
    return _shaped(count, rng, lambda frequency: np.maximum(frequency, 20.0) ** -0.5)


def _room(count: int, rng: np.random.Generator) -> Float64:
    """Ventilation that swells a little, and mains hum: power falls by 12 dB an octave above 120 Hz."""
    air = _shaped(count, rng, lambda frequency: 1 / (1 + (frequency / 120.0) ** 2))
    air /= np.std(air)
    time = np.arange(count) / RATE
    swell = 1 + 0.25 * np.sin(2 * np.pi * (0.13 * time + rng.random()))
    hum = sum(
        weight * np.sin(2 * np.pi * (50.0 * harmonic * time + rng.random()))
        for harmonic, weight in ((1, 0.2), (2, 0.12), (3, 0.06))
    )
    return np.asarray(air * swell + hum)


def _music(count: int, rng: np.random.Generator) -> Float64:
    """Hold music: chords of a soft organ, a plucked melody in eighths, a light drum on every beat."""
    samples = np.zeros(count)
    beat = int(RATE * 60 / rng.uniform(84, 116))
    root = float(rng.uniform(196, 262))
    position = bar = 0
    while position < count:
        degree = PROGRESSION[bar % len(PROGRESSION)]
        for third in (0, 2, 4):
            _add(samples, position, 0.3 * _organ(_pitch(root, degree + third), 4 * beat))
        for eighth in range(8):
            if rng.random() < 0.75:
                degree_of_note = 7 + degree + int(rng.choice([0, 1, 2, 4, 5]))
                _add(samples, position + eighth * beat // 2, _plucked(_pitch(root, degree_of_note), beat))
        for quarter in range(4):
            drum = rng.standard_normal(beat // 4) * np.exp(-np.arange(beat // 4) / (0.02 * RATE))
            _add(samples, position + quarter * beat, 0.25 * drum)
        position, bar = position + 4 * beat, bar + 1
    return samples


def _pitch(root: float, degree: int) -> float:
    octave, step = divmod(degree, len(SCALE))
    return float(root * 2 ** (octave + SCALE[step] / 12))


def _organ(frequency: float, count: int) -> Float64:
    time = np.arange(count) / RATE
    tone = sum(np.sin(2 * np.pi * frequency * k * time) / k for k in (1, 2, 3))
    fade = np.minimum(1, np.minimum(time, time[::-1]) / 0.05)
    return np.asarray(tone * fade)


def _plucked(frequency: float, count: int) -> Float64:
    time = np.arange(count) / RATE
    harmonics = range(1, max(2, min(6, int(RATE / 2 / frequency))))
    return np.asarray(
        sum(np.sin(2 * np.pi * frequency * k * time) * np.exp(-time * (3 + 2 * k)) / k for k in harmonics)
    )


def _keyboard(count: int, rng: np.random.Generator) -> Float64:
    """Someone types: bursts of about six keys a second, each a click down and a softer one up."""
    samples = np.zeros(count)
    position = 0
    while position < count:
        for _ in range(int(rng.integers(5, 30))):
            strength = rng.uniform(0.4, 1.0)
            _add(samples, position, strength * _click(rng))
            _add(samples, position + int(rng.uniform(0.06, 0.12) * RATE), 0.4 * strength * _click(rng))
            position += int(rng.gamma(4.0, 0.04) * RATE) + 1
        position += int(rng.uniform(0.8, 2.5) * RATE)
    return samples


def _click(rng: np.random.Generator) -> Float64:
    time = np.arange(int(0.03 * RATE)) / RATE
    knock = np.sin(2 * np.pi * rng.uniform(180, 400) * time) * np.exp(-time / 0.006)
    snap = rng.standard_normal(len(time)) * np.exp(-time / 0.002)
    return np.asarray(snap + 0.6 * knock)


def _add(samples: Float64, at: int, sound: Float64) -> None:
    end = min(len(samples), at + len(sound))
    if at < end:
        samples[at:end] += sound[: end - at]


_MAKERS: dict[Sound, Callable[[int, np.random.Generator], Float64]] = {
    Sound.WHITE: _white,
    Sound.PINK: _pink,
    Sound.ROOM: _room,
    Sound.MUSIC: _music,
    Sound.KEYBOARD: _keyboard,
}
