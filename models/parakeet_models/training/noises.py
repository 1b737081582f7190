"""What is heard when nobody speaks: rooms, fans, hum, music, keyboards, other people. Nothing of it may become a word.

Generated once into a `NoiseBank` and cut from there: music takes longer to make than to listen to in training.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from .clips import SAMPLE_RATE, Samples

NoiseGenerator = np.random.Generator
Maker = Callable[[int, random.Random, NoiseGenerator], Samples]

_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 2, 4, 7, 9), (0, 3, 5, 7, 10))
"""Major, minor and the two pentatonic scales, in semitones."""


def unit(samples: np.ndarray) -> Samples:
    """Scaled to a power of one."""
    return np.asarray((samples / (np.sqrt(np.mean(samples**2)) + 1e-9)), np.float32)


def stationary_noise(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """White, pink-like or brown-like noise of unit power."""
    pole = rng.choice([0.0, 0.5, 0.7, 0.9, 0.97])
    return unit(lfilter([1.0], [1.0, -pole], noise.standard_normal(count)))


def fan(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """A fan or an engine: low noise that swells with the blades, and their tone."""
    time = np.arange(count) / SAMPLE_RATE
    sound = lfilter([1.0], [1.0, -rng.uniform(0.85, 0.985)], noise.standard_normal(count))
    sound = sound / np.std(sound)
    turning = 2 * math.pi * rng.uniform(5, 40) * time
    sound *= 1 + rng.uniform(0, 0.5) * np.sin(turning)
    for harmonic in range(1, rng.randrange(2, 8)):
        sound += rng.uniform(0, 0.6) / harmonic * np.sin(harmonic * rng.choice([3, 4, 5, 7]) * turning)
    return unit(sound)


def hum(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """Mains hum with its harmonics."""
    time = np.arange(count) / SAMPLE_RATE
    base = rng.choice([50.0, 60.0]) * rng.uniform(0.998, 1.002)
    sound = sum(
        rng.random() / k * np.sin(2 * math.pi * base * k * time + rng.uniform(0, 6)) for k in range(1, 16)
    )
    return unit(np.asarray(sound) + 10 ** rng.uniform(-3, -1) * noise.standard_normal(count))


def beeps(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """Steady tones, dial tones and beeps."""
    time = np.arange(count) / SAMPLE_RATE
    period = rng.uniform(0.15, 4.0)
    gate = np.ones(count) if rng.random() < 0.25 else (time % period) < period * rng.uniform(0.1, 0.8)
    sound = sum(np.sin(2 * math.pi * rng.uniform(100, 3500) * time) for _ in range(rng.randrange(1, 4)))
    return unit(np.asarray(sound) * gate + 1e-3 * noise.standard_normal(count))


def _note(pitch: float, seconds: float, partials: np.ndarray, decay: float, vibrato: float) -> np.ndarray:
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    phase = 2 * math.pi * pitch * time + vibrato * np.sin(2 * math.pi * 5.5 * time)
    numbers = np.arange(1, len(partials) + 1)
    audible = numbers * pitch < 0.48 * SAMPLE_RATE
    sound = (partials[audible, None] * np.sin(numbers[audible, None] * phase)).sum(0)
    attack = np.minimum(1.0, time / 0.012) * np.minimum(1.0, (seconds - time) / 0.02)
    return np.asarray(sound * attack * np.exp(-decay * time))


def music(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """A few bars of chords, bass, melody and drums, each with chance; some like music on hold."""
    sound = np.zeros(count + 4 * SAMPLE_RATE)
    beat = 60 / rng.uniform(60, 150)
    scale, root = rng.choice(_SCALES), rng.uniform(40, 60)
    voices = rng.sample(["chords", "melody", "bass", "drums"], rng.choice([1, 2, 2, 3, 4]))

    def timbre() -> np.ndarray:
        partials = np.arange(1, rng.randrange(2, 12)) ** -rng.uniform(0.6, 2.2)
        return partials * np.array([rng.random() if rng.random() < 0.4 else 1.0 for _ in partials])

    def pitch(degree: int, octave: int) -> float:
        steps = scale[degree % len(scale)] + 12 * (degree // len(scale) + octave)
        return float(440.0 * 2 ** ((root + steps - 69) / 12))

    def add(start: float, note: np.ndarray, level: float) -> None:
        place = int(start * SAMPLE_RATE)
        piece = note[: len(sound) - place]
        sound[place : place + len(piece)] += level * piece

    length = count / SAMPLE_RATE
    for voice in voices:
        partials, decay, vibrato = timbre(), rng.choice([0.0, 0.5, 2.0, 5.0]), rng.choice([0, 0, 0.3, 1.0])
        start, degree = 0.0, rng.randrange(7)
        while start < length:
            if voice == "chords":
                span, degree = beat * rng.choice([2, 4]), rng.choice([0, 3, 4, 5, degree])
                for third in range(rng.choice([3, 3, 4])):
                    add(start, _note(pitch(degree + 2 * third, 0), span, partials, decay, vibrato), 0.35)
            elif voice == "melody":
                span, degree = beat * rng.choice([0.25, 0.5, 0.5, 1, 2]), degree + rng.randrange(-3, 4)
                degree = max(0, min(14, degree))
                if rng.random() < 0.85:
                    add(start, _note(pitch(degree, 1), span, partials, decay, vibrato), 0.6)
            elif voice == "bass":
                span = beat * rng.choice([0.5, 1])
                add(start, _note(pitch(rng.choice([0, 0, 4, 3]), -1), span, partials, decay, 0), 0.7)
            else:
                span = beat * 0.5
                burst = noise.standard_normal(rng.randrange(800, 4000))
                burst *= np.exp(-np.arange(len(burst)) / (len(burst) / 6))
                add(start, lfilter([1], [1, -rng.choice([0.0, 0.5, 0.97])], burst), rng.uniform(0.1, 0.6))
            start += span
    return unit(sound[:count] + 1e-3 * noise.standard_normal(count))


def clicks(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """A keyboard, knocks, breaths, rustling: short bursts of coloured noise."""
    sound = np.zeros(count + SAMPLE_RATE)
    longest = rng.choice([300, 1200, 5000])
    for _ in range(max(1, int(count / SAMPLE_RATE * rng.uniform(0.5, 9)))):
        length = rng.randrange(20, longest)
        burst = noise.standard_normal(length) * np.exp(-np.arange(length) / (length / 4))
        start = rng.randrange(count)
        sound[start : start + length] += rng.uniform(0.1, 1) * lfilter([1], [1, -rng.uniform(0, 0.95)], burst)
    return unit(sound[:count] + 10 ** rng.uniform(-4, -1.5) * noise.standard_normal(count))


MAKERS: dict[str, tuple[Maker, float]] = {
    "noise": (stationary_noise, 0.0), "fan": (fan, 0.16), "hum": (hum, 0.1), "beeps": (beeps, 0.14),
    "music": (music, 0.36), "clicks": (clicks, 0.24),
}  # fmt: skip
"""Name → maker and its share of the bank; plain noise costs nothing and is made when it is wanted."""

PIECE_S = 17


class NoiseBank:
    """Ready-made noises of unit power, and `babble` (a long mix of voices) if there is any."""

    def __init__(self, seed: int, babble: Samples | None, pieces: int = 64) -> None:
        rng, noise = random.Random(f"noise/{seed}"), np.random.default_rng(seed)
        kinds = rng.choices(list(MAKERS), [share for _, share in MAKERS.values()], k=pieces)
        self._pieces = [MAKERS[kind][0](PIECE_S * SAMPLE_RATE, rng, noise) for kind in kinds]
        self._babble = babble

    def draw(self, count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
        """`count` samples of noise of any kind, at most `PIECE_S` seconds, of about unit power."""
        share = rng.random()
        if self._babble is not None and share < 0.2:
            return self._cut(self._babble, count, rng)
        if share < 0.5:
            return stationary_noise(count, rng, noise)
        return self._cut(rng.choice(self._pieces), count, rng)

    @staticmethod
    def _cut(piece: Samples, count: int, rng: random.Random) -> Samples:
        start = rng.randrange(max(1, len(piece) - count))
        return piece[start : start + count]


def on_and_off(sound: Samples, rng: random.Random) -> Samples:
    """The noise comes and goes: pieces of 0.2 to 3 s, each at its own level, some at none."""
    gain = np.empty(len(sound), np.float32)
    place = 0
    while place < len(sound):
        span = int(rng.uniform(0.2, 3.0) * SAMPLE_RATE)
        gain[place : place + span] = 0.0 if rng.random() < 0.4 else rng.uniform(0.2, 1.5)
        place += span
    return sound * gain
