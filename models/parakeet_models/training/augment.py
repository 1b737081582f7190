"""What happens to speech between the mouth and the model: speed, room, noise, gain, the telephone, bad converters.

Every function takes and returns float32 samples at 16 kHz and draws from the generators it is given.
"""

from __future__ import annotations

import math
import random

import numpy as np
from scipy.signal import lfilter, oaconvolve, resample_poly

from .clips import Samples

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


def mix_noise(samples: Samples, sound: Samples, snr_db: float) -> Samples:
    """Add unit-power `sound` at `snr_db` below the speech (its power over the loud half of the frames)."""
    frames = samples[: len(samples) // 160 * 160].reshape(-1, 160)
    power = np.sort((frames**2).mean(axis=1))[len(frames) // 2 :].mean() if len(frames) else 0.0
    level = math.sqrt(float(power) + 1e-10) * 10 ** (-snr_db / 20)
    return np.asarray((samples + level * sound), np.float32)


def with_offset(samples: Samples, rng: random.Random) -> Samples:
    """A constant added, as cheap sound cards do: -66 to -20 dB of full scale."""
    return samples + np.float32(rng.choice([-1, 1]) * 10 ** rng.uniform(-3.3, -1.0))


def overdriven(samples: Samples, rng: random.Random) -> Samples:
    """2 to 14 dB too loud for the converter; the peaks are cut off."""
    gain = 10 ** rng.uniform(0.1, 0.7) / max(float(np.abs(samples).max()), 1e-3)
    limit = rng.choice([1.0, rng.uniform(0.1, 1.0)])
    return np.asarray(np.clip(samples * gain, -1, 1) * limit, np.float32)
