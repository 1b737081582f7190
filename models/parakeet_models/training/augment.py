"""What happens to speech between the mouth and the model: speed, room, noise, gain, the telephone.

Every function takes and returns float32 samples at 16 kHz and draws from the generators it is given.
"""

from __future__ import annotations

import math
import random

import numpy as np
from scipy.signal import lfilter, oaconvolve, resample_poly

from .clips import SAMPLE_RATE, Samples

NoiseGenerator = np.random.Generator


def change_speed(samples: Samples, factor: float) -> Samples:
    """Play `factor` times faster, pitch and formants included (linear interpolation)."""
    count = int(len(samples) / factor)
    return np.asarray(np.interp(np.arange(count) * factor, np.arange(len(samples)), samples), np.float32)


def through_telephone(samples: Samples, *, mu_law: bool) -> Samples:
    """8 kHz band; with `mu_law` also the 8-bit G.711 quantisation."""
    narrow = resample_poly(samples, 1, 2)
    if mu_law:
        narrow = np.clip(narrow, -1, 1)
        compressed = np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / math.log(256)
        steps = np.round(compressed * 127) / 127
        narrow = np.sign(steps) * (np.expm1(np.abs(steps) * math.log(256)) / 255)
    return np.asarray(resample_poly(narrow, 2, 1)[: len(samples)], np.float32)


def in_room(samples: Samples, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """A synthetic room: exponentially decaying noise behind the direct sound, 50 to 300 ms."""
    length = rng.randrange(800, 4800)
    decay = np.exp(-np.arange(length) / (length / rng.uniform(3, 7)))
    response = noise.standard_normal(length) * decay * rng.uniform(0.03, 0.3)
    response[0] = 1.0
    return np.asarray(oaconvolve(samples, response)[: len(samples)], np.float32)


def coloured(samples: Samples, rng: random.Random) -> Samples:
    """A microphone's colour: a tilt and one resonance or notch."""
    tilted = lfilter([1.0, rng.uniform(-0.7, 0.6)], [1.0], samples)
    if rng.random() < 0.5:
        radius, angle = rng.uniform(0.3, 0.85), rng.uniform(0.05, 0.9) * math.pi
        resonance = [1.0, -2 * radius * math.cos(angle), radius * radius]
        tilted = (
            lfilter([1.0], resonance, tilted) if rng.random() < 0.5 else lfilter(resonance, [1.0], tilted)
        )
    return np.asarray(tilted, np.float32)


def _unit(samples: np.ndarray) -> Samples:
    return np.asarray((samples / (np.sqrt(np.mean(samples**2)) + 1e-9)), np.float32)


def stationary_noise(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """White, pink-like or brown-like noise of unit power."""
    pole = rng.choice([0.0, 0.5, 0.7, 0.9, 0.97])
    return _unit(lfilter([1.0], [1.0, -pole], noise.standard_normal(count)))


def tones(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """Hum, steady tones, beeps or something like music, of unit power."""
    time = np.arange(count) / SAMPLE_RATE
    kind = rng.choice(["hum", "steady", "beeps", "music"])
    if kind == "hum":
        base = rng.choice([50.0, 60.0])
        sound = sum(
            rng.random() / k * np.sin(2 * math.pi * base * k * time + rng.uniform(0, 6)) for k in range(1, 12)
        )
    elif kind == "steady":
        sound = sum(np.sin(2 * math.pi * rng.uniform(100, 3500) * time) for _ in range(rng.randrange(1, 4)))
    elif kind == "beeps":
        period = rng.uniform(0.15, 1.5)
        gate = (time % period) < period * rng.uniform(0.2, 0.8)
        pitch = 2 * math.pi * rng.uniform(300, 2000)
        sound = gate * (np.sin(pitch * time) + rng.choice([0, 1]) * np.sin(1.37 * pitch * time))
    else:
        sound = np.zeros(count)
        step = rng.uniform(0.12, 0.6)
        for start in np.arange(0.0, count / SAMPLE_RATE, step):
            here = slice(int(start * SAMPLE_RATE), int((start + step) * SAMPLE_RATE))
            local = time[here] - start
            pitch = 110.0 * 2 ** (rng.randrange(0, 36) / 12)
            for harmonic in range(1, rng.randrange(2, 7)):
                sound[here] += np.sin(2 * math.pi * pitch * harmonic * local) * np.exp(-local * 4) / harmonic
    return _unit(np.asarray(sound) + 1e-3 * noise.standard_normal(count))


def clicks(count: int, rng: random.Random, noise: NoiseGenerator) -> Samples:
    """Clicks, knocks and breaths: short bursts of coloured noise, of unit power."""
    sound = np.zeros(count + SAMPLE_RATE)
    for _ in range(max(1, int(count / SAMPLE_RATE * rng.uniform(0.5, 4)))):
        length = rng.randrange(20, 5000)
        burst = noise.standard_normal(length) * np.exp(-np.arange(length) / (length / 4))
        start = rng.randrange(count)
        sound[start : start + length] += rng.uniform(0.1, 1) * lfilter([1], [1, -rng.uniform(0, 0.95)], burst)
    return _unit(sound[:count] + 1e-4 * noise.standard_normal(count))


def any_noise(count: int, rng: random.Random, noise: NoiseGenerator, babble: Samples | None) -> Samples:
    """One of all of them; `babble` (a long mix of voices of unit power) where there is one."""
    share = rng.random()
    if babble is not None and len(babble) > count and share < 0.25:
        start = rng.randrange(len(babble) - count)
        return babble[start : start + count]
    if share < 0.75:
        return stationary_noise(count, rng, noise)
    return (tones if share < 0.9 else clicks)(count, rng, noise)


def mix_noise(samples: Samples, sound: Samples, snr_db: float) -> Samples:
    """Add unit-power `sound` at `snr_db` below the speech (its power over the loud half of the frames)."""
    frames = samples[: len(samples) // 160 * 160].reshape(-1, 160)
    power = np.sort((frames**2).mean(axis=1))[len(frames) // 2 :].mean() if len(frames) else 0.0
    level = math.sqrt(float(power) + 1e-10) * 10 ** (-snr_db / 20)
    return np.asarray((samples + level * sound), np.float32)
