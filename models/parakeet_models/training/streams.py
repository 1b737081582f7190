"""Compose training streams: one or more utterances with silence between them, as a live microphone hears it.

Digit strings are mostly joined from isolated words of one speaker, which gives exact word times for the
frame-level warm start. `<EOU>` belongs after the last word of an utterance, never at a pause inside a string;
streams of nothing but noise carry no label at all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from . import augment, features
from .clips import SAMPLE_RATE, Clip, Samples
from .features import Mel
from .grammar import draw_count, draw_digits
from .library import ClipLibrary

STRING_LENGTHS: tuple[tuple[int, float], ...] = (
    (1, 5.0), (2, 2.0), (3, 3.0), (4, 3.5), (5, 3.0), (6, 2.0), (7, 2.0), (8, 0.8), (10, 1.0), (12, 0.4), (16, 0.3),
)  # fmt: skip
"""How many digits an utterance has."""

MAX_SECONDS = 15.6

MIXED_SHARE = 0.18
"""Utterances with an answer and digits ("yes four two", "nine okay"): else a misheard first word decides the rest."""

USUAL_PAUSE = 0.45
LONGEST_PAUSE = 0.65
"""Seconds of silence inside a string. A joined string has no prosody that tells a pause from an end, so most pauses
must be shorter than the delay of `<EOU>` (`batches.EOU_DELAY`)."""


@dataclass(frozen=True)
class Word:
    """A word and when it is said, in seconds from the start of the stream."""

    text: str
    start: float
    end: float


@dataclass
class Utterance:
    """Words up to one end of utterance; `closed` is False if the stream ends before the end can be known."""

    words: list[Word]
    closed: bool = True


@dataclass
class Stream:
    """Audio and what is said in it."""

    samples: Samples
    utterances: list[Utterance]
    warp: float = 1.0
    band_hz: int = 8000


@dataclass
class Difficulty:
    """What the schedule turns up while training goes on; 0 is clean single utterances."""

    level: float = 1.0
    """Probability that a distortion that could be applied is considered at all."""
    max_digits: int = 16
    max_utterances: int = 4
    noise_only: float = 0.06
    """Share of the streams without speech."""
    digit_share: float = 0.78


EASY = Difficulty(level=0.05, max_digits=4, max_utterances=1, noise_only=0.01)


def _silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)


def _faded(samples: Samples) -> Samples:
    """Ramp both ends over 4 ms, so that joins do not click."""
    edge = 64
    faded = samples.copy()
    faded[:edge] *= np.linspace(0, 1, edge, dtype=np.float32)
    faded[-edge:] *= np.linspace(1, 0, edge, dtype=np.float32)
    return faded


def _spread(clip: Clip, start: float, seconds: float) -> list[Word]:
    """Word times inside a clip of several words: in proportion to the number of letters."""
    weights = np.array([len(word) + 1.5 for word in clip.words])
    edges = start + seconds * np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return [Word(word, float(edges[i]), float(edges[i + 1])) for i, word in enumerate(clip.words)]


@dataclass
class _Track:
    """A stream under construction."""

    parts: list[Samples] = field(default_factory=list)
    seconds: float = 0.0

    def append(self, samples: Samples) -> float:
        """Add samples; returns the time they start at."""
        start = self.seconds
        self.parts.append(samples)
        self.seconds += len(samples) / SAMPLE_RATE
        return start


class StreamComposer:
    """Draws streams from a clip library; everything follows from the seed and the order of the calls."""

    def __init__(self, library: ClipLibrary, seed: int) -> None:
        self._library = library
        self._rng = random.Random(seed)
        self._noise = np.random.default_rng(seed)
        self._babble = library.babble(60, self._rng)

    def reseed(self, seed: int) -> None:
        """Start another sequence of streams."""
        self._rng = random.Random(seed)
        self._noise = np.random.default_rng(seed)

    def refresh(self) -> int:
        """Take in new shards."""
        return self._library.refresh()

    def features(self, difficulty: Difficulty) -> tuple[Mel, list[Utterance]]:
        """The next stream as log-mel, with its distortions of the spectrum."""
        stream = self.stream(difficulty)
        mel = features.log_mel(stream.samples, stream.warp, stream.band_hz)
        if self._rng.random() < 0.6 * difficulty.level:
            mel = features.mask_bands(mel, self._rng)
        return mel, stream.utterances

    def stream(self, difficulty: Difficulty) -> Stream:
        """The next stream."""
        rng = self._rng
        if rng.random() < difficulty.noise_only:
            return self._noise_stream()
        track = _Track()
        # Recordings often begin in the middle of the first sound, and the first encoder frames see the least.
        track.append(_silence(rng.uniform(0.0, rng.choice([0.03, 0.3, 1.5]))))
        utterances: list[Utterance] = []
        count = (
            rng.choice([1, 1, 2, 2, 3, difficulty.max_utterances]) if rng.random() < difficulty.level else 1
        )
        for _ in range(min(count, difficulty.max_utterances)):
            if track.seconds > MAX_SECONDS - 6.0 and utterances:
                break
            utterances.append(Utterance(self._say(track, difficulty)))
            track.append(_silence(rng.uniform(1.0, 2.2) if rng.random() < 0.8 else rng.uniform(0.75, 1.0)))
        samples = np.concatenate(track.parts)
        if (
            rng.random() < 0.06 * difficulty.level
        ):  # the stream breaks off: no end of utterance may be claimed
            utterances[-1].closed = False
            samples = samples[: int((utterances[-1].words[-1].end + rng.uniform(0.02, 0.12)) * SAMPLE_RATE)]
        return self._distorted(samples[: int(MAX_SECONDS * SAMPLE_RATE)], utterances, difficulty)

    def _say(self, track: _Track, difficulty: Difficulty) -> list[Word]:
        rng = self._rng
        if rng.random() < MIXED_SHARE * difficulty.level:
            parts = [self._say_answer, self._say_digits]
            rng.shuffle(parts)
            words = parts[0](track, difficulty)
            track.append(_silence(rng.uniform(0.02, USUAL_PAUSE)))
            return words + parts[1](track, difficulty)
        return (self._say_digits if rng.random() < difficulty.digit_share else self._say_answer)(
            track, difficulty
        )

    def _say_answer(self, track: _Track, difficulty: Difficulty) -> list[Word]:
        source = self._library.draw_source("answer", self._rng)
        clip = self._rng.choice(self._library.draw_speaker(source, "answer", self._rng))
        return self._say_clip(track, clip, self._draw_speed(difficulty))

    def _say_digits(self, track: _Track, difficulty: Difficulty) -> list[Word]:
        rng = self._rng
        digits = min(draw_count(rng, STRING_LENGTHS), difficulty.max_digits)
        if digits in range(2, 8) and rng.random() < 0.35:
            source = self._library.draw_source("string", rng)
            clip = rng.choice(self._library.draw_speaker(source, "string", rng))
            return self._say_clip(track, clip, self._draw_speed(difficulty))
        return self._say_string(track, digits, difficulty)

    def _draw_speed(self, difficulty: Difficulty) -> float:
        if self._rng.random() > max(0.3, difficulty.level):
            return 1.0
        return self._rng.uniform(0.82, 1.24)

    def _say_clip(self, track: _Track, clip: Clip, speed: float) -> list[Word]:
        cut = clip.samples
        if self._rng.random() < 0.3 and len(cut) > 0.25 * SAMPLE_RATE:  # clumsily trimmed, as recordings are
            cut = cut[self._rng.randrange(600) : len(cut) - self._rng.randrange(800)]
        samples = _faded(augment.change_speed(cut, speed)) * self._rng.uniform(0.5, 1.0)
        start = track.append(samples.astype(np.float32))
        return _spread(clip, start, len(samples) / SAMPLE_RATE)

    def _say_string(self, track: _Track, digits: int, difficulty: Difficulty) -> list[Word]:
        """A digit string joined from isolated digits of one speaker."""
        rng = self._rng
        clips = self._library.draw_speaker(self._library.draw_source("digit", rng), "digit", rng)
        speed = self._draw_speed(difficulty)
        tight = rng.uniform(0.05, 0.3)
        pauses = rng.choice([0.0, 0.1, 0.3])
        words: list[Word] = []
        for i, digit in enumerate(draw_digits(rng, digits)):
            if i:
                long_pause = rng.random() < pauses
                longest = LONGEST_PAUSE if rng.random() < 0.1 else USUAL_PAUSE
                track.append(_silence(rng.uniform(0.2, longest) if long_pause else rng.uniform(0.01, tight)))
            candidates = [clip for clip in clips if clip.text == digit] or clips
            words += self._say_clip(track, rng.choice(candidates), speed * rng.uniform(0.95, 1.05))
            if track.seconds > MAX_SECONDS - 2.0:
                break
        return words

    def _distorted(self, samples: Samples, utterances: list[Utterance], difficulty: Difficulty) -> Stream:
        rng, level = self._rng, difficulty.level

        def happens(probability: float) -> bool:
            return rng.random() < probability * level

        if happens(0.3):
            samples = augment.in_room(samples, rng, self._noise)
        if happens(0.4):
            samples = augment.coloured(samples, rng)
        samples = samples * np.float32(10 ** rng.uniform(-1.4, 0) / max(float(np.abs(samples).max()), 1e-3))
        if happens(0.55):
            sound = augment.any_noise(len(samples), rng, self._noise, self._babble)
            samples = augment.mix_noise(samples, sound, rng.choice([rng.uniform(5, 20), rng.uniform(15, 45)]))
        elif rng.random() < 0.6:  # a quiet line; otherwise the silence stays digital zero, as a flush is
            hiss = augment.stationary_noise(len(samples), rng, self._noise)
            samples = samples + hiss * np.float32(10 ** rng.uniform(-4.5, -3))
        band = 8000
        if rng.random() < 0.6:
            band = 4000
            samples = augment.through_telephone(samples, mu_law=rng.random() < 0.4)
        warp = rng.uniform(0.86, 1.16) if happens(0.6) else 1.0
        return Stream(np.clip(samples, -1, 1).astype(np.float32), utterances, warp, band)

    def _noise_stream(self) -> Stream:
        rng = self._rng
        count = int(rng.uniform(2.0, 9.0) * SAMPLE_RATE)
        sound = augment.any_noise(count, rng, self._noise, self._babble if rng.random() < 0.3 else None)
        if rng.random() < 0.3:
            sound = (
                sound * np.repeat(np.array([rng.random() for _ in range(count // 4000 + 1)]), 4000)[:count]
            )
        samples = sound * 10 ** rng.uniform(-4.5, -0.7)
        if rng.random() < 0.5:
            samples = augment.through_telephone(samples.astype(np.float32), mu_law=rng.random() < 0.4)
        return Stream(np.clip(samples, -1, 1).astype(np.float32), [])
