"""Compose training streams: one or more utterances with silence between them, as a live microphone hears it.

Strings, codes and lists are joined from isolated words of one speaker, which gives exact word times for the frame-level
warm start and more variety than any number of clips. `<EOU>` belongs after the last word of an utterance; streams of
nothing but noise carry no label at all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np

from . import augment, features
from .clips import SAMPLE_RATE, Clip, Samples
from .features import Mel
from .library import ClipLibrary
from .noises import NoiseBank, on_and_off, stationary_noise
from .numbers import draw_count
from .sounds import Sound

MAX_SECONDS = 15.6

SHORT_PAUSE = 0.22
"""Most seconds of silence between joined words of an utterance. Joined words have no prosody that tells a pause from
an end, so with the silence at the edges of the clips a pause must stay below the delay of `<EOU>` (`batches`)."""

LONG_PAUSE = (0.25, 0.6)
LONG_PAUSE_SHARE = 0.04
"""Now and then a longer pause without `<EOU>`, for speakers who hesitate."""

GAPS: tuple[tuple[tuple[float, float], float], ...] = (
    ((0.24, 0.5), 0.32),
    ((0.5, 0.8), 0.33),
    ((0.8, 1.6), 0.28),
    ((1.6, 4.0), 0.07),
)
"""Seconds of silence between utterances, and how often: a second of silence costs as much as one of speech and teaches
less. The shortest is the shortest silence in which the network says `<EOU>` when it listens. With 0.5 s, a word that
followed 0.28 to 0.44 s after another, and so soon after an `<EOU>`, was written twice or three times in one frame; with
0.38 s only the words after 0.28 to 0.36 s were."""

LAST_SILENCE = (0.38, 0.8)
"""Seconds of silence behind the last utterance, long enough for `EOU_DELAY`; less is no end that can be known."""

JOINED_LENGTHS: dict[str, tuple[tuple[int, float], ...]] = {
    "digits": (
        (1, 4.0), (2, 2.0), (3, 3.0), (4, 3.5), (5, 3.0), (6, 2.0), (7, 2.0), (8, 0.8), (10, 1.0), (12, 0.4), (16, 0.3),
    ),
    "code": ((2, 2.0), (3, 3.0), (4, 3.0), (5, 2.0), (6, 1.5), (8, 0.7)),
    "list": ((2, 2.0), (3, 3.0), (4, 3.0), (5, 3.0), (6, 2.0), (8, 1.0)),
}  # fmt: skip
"""How many words an utterance has that is joined from single ones."""

JOINED_POOLS = {"digits": "=digit", "code": "=letter", "list": "word"}
"""The pool that a speaker must have clips in."""

CODE_POOLS = ("=letter", "=letter", "=letter", "=digit", "=nato")

UTTERANCES: dict[str, float] = {
    "digits": 0.3, "code": 0.06, "list": 0.06, "word": 0.12, "string": 0.08, "spelling": 0.05, "number": 0.1,
    "telephone": 0.11, "command": 0.06, "everyday": 0.04, "salad": 0.03,
}  # fmt: skip
"""What an utterance is: joined (the first three) or a clip of a kind; the share of each."""

EASY_UTTERANCES: dict[str, float] = {
    "list": 0.5, "digits": 0.12, "code": 0.13, "word": 0.12, "string": 0.03, "spelling": 0.03, "number": 0.04,
    "telephone": 0.02, "command": 0.01,
}  # fmt: skip
"""In the warm start what counts is words per second: a list has four times as many as single words with the silence
around them, and a word has to be heard some hundred times (measured: thirty times are nothing)."""

FIRST_UTTERANCES: dict[str, float] = {"digits": 0.6, "code": 0.2, "=answer": 0.2}
"""The first minutes: some 80 words. With all of them from the start the network learns none (measured: no progress in
four minutes), while with these the frame accuracy passes one half."""

WARP = (0.84, 1.2)
WARPED_SHARE = 0.65
"""Vocal tracts of other lengths, from the first minute on: of the words of voices in training the model knew 75 to 88 %
when it knew 35 % of those of other voices."""

EASY_SECONDS = 2.5
"""Longest clip in the warm start."""

GATED_SHARE = 0.4
GATE_DB = (-48.0, -18.0)
GATE_MARGIN = 0.08
"""A noise gate, discontinuous transmission, or words recorded one by one: the line's noise is there while somebody
speaks and up to so many seconds around it, and digital zero otherwise. Its level is in dB of the speech's peak."""


@dataclass(frozen=True)
class Word:
    """A word and when it is said, in seconds from the start of the stream."""

    text: str
    start: float
    end: float
    sounds: tuple[Sound, ...] = ()
    """When each of its sounds is heard, if that is known."""


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
    max_words: int = 16
    max_utterances: int = 4
    noise_only: float = 0.05
    """Share of the streams without speech."""
    easy: float = 0.0
    """Share of the utterances drawn from `EASY_UTTERANCES`."""
    first: float = 0.0
    """Share of these drawn from `FIRST_UTTERANCES` instead."""


EASY = Difficulty(level=0.05, max_words=8, max_utterances=1, noise_only=0.01, easy=1.0)
FIRST = replace(EASY, first=1.0)


def _silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)


def _faded(samples: Samples) -> Samples:
    """Ramp both ends over 4 ms, so that joins do not click."""
    edge = 64
    faded = samples.copy()
    faded[:edge] *= np.linspace(0, 1, edge, dtype=np.float32)
    faded[-edge:] *= np.linspace(1, 0, edge, dtype=np.float32)
    return faded


def _word_times(clip: Clip, cut: float, start: float, seconds: float, speed: float) -> list[Word]:
    """Words of a clip that begins `cut` seconds late and is played at `speed` from `start` on for `seconds`.

    Times come from the synthesiser if it told them, else from the alignment, else in proportion to the number of
    letters.
    """

    def placed(second: float) -> float:
        return min(max((second - cut) / speed, 0.0), seconds)

    known = clip.times or tuple((sounds[0][1], sounds[-1][2]) for sounds in clip.sounds)
    if known:
        times = [(placed(a), placed(b)) for a, b in known]
    else:
        weights = np.array([len(word) + 1.5 for word in clip.words])
        edges = seconds * np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        times = [(float(edges[i]), float(edges[i + 1])) for i in range(len(weights))]
    times[-1] = (times[-1][0], seconds)  # the end of the sound is the end of the last word
    heard = [
        tuple((sound, start + placed(a), start + placed(b)) for sound, a, b in sounds)
        for sounds in clip.sounds or [()] * len(times)
    ]
    return [
        Word(word, start + a, start + b, sounds)
        for word, (a, b), sounds in zip(clip.words, times, heard, strict=True)
    ]


def _keep_heard(utterances: list[Utterance], seconds: float) -> None:
    """Take out the words that are not heard in full in a stream of `seconds`, and the end that comes too late."""
    for utterance in utterances:
        said = len(utterance.words)
        utterance.words = [word for word in utterance.words if word.end <= seconds]
        utterance.closed &= (
            len(utterance.words) == said and utterance.words[-1].end + LAST_SILENCE[0] <= seconds
        )
    utterances[:] = [utterance for utterance in utterances if utterance.words]


@dataclass(frozen=True)
class Gate:
    """A line that lets its noise through only while somebody speaks."""

    hiss: Samples
    """Of unit power."""
    level: float
    """Of the speech's peak."""

    def opened(self, samples: Samples, ahead: int, behind: int, start: int) -> Samples:
        """`samples` with `ahead` samples before and `behind` after them, and in all of it the noise from `start` on."""
        heard = np.pad(samples, (ahead, behind))
        hiss = self.hiss.take(np.arange(start, start + len(heard)), mode="wrap")
        return heard + hiss * np.float32(self.level * np.abs(samples).max())


@dataclass
class _Track:
    """A stream under construction."""

    gate: Gate | None = None
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
        self._bank = NoiseBank(seed, library.babble(60, self._rng))
        self._pools = library.pools()

    def reseed(self, seed: int) -> None:
        """Start another sequence of streams."""
        self._rng = random.Random(seed)
        self._noise = np.random.default_rng(seed)
        self._bank = NoiseBank(seed, self._library.babble(60, self._rng))

    def refresh(self) -> int:
        """Take in new shards."""
        added = self._library.refresh()
        self._pools = self._library.pools()
        return added

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
        track = _Track(self._draw_gate() if rng.random() < GATED_SHARE * difficulty.level else None)
        # Recordings often begin in the middle of the first sound, and the first encoder frames see the least.
        track.append(_silence(rng.uniform(0.0, rng.choice([0.0, 0.03, 0.3, 1.5]))))
        utterances: list[Utterance] = []
        count = (
            rng.choice([1, 1, 2, 2, 3, difficulty.max_utterances]) if rng.random() < difficulty.level else 1
        )
        for _ in range(min(count, difficulty.max_utterances)):
            if track.seconds > MAX_SECONDS - 6.0 and utterances:
                break
            utterances.append(Utterance(self._say(track, difficulty)))
            low, high = rng.choices([gap for gap, _ in GAPS], [share for _, share in GAPS])[0]
            track.append(_silence(rng.uniform(low, high)))
        # Silence teaches little: mostly no more of it at the end than `<EOU>` needs.
        last = track.parts[-1]
        if rng.random() < 0.6 or len(last) < LAST_SILENCE[0] * SAMPLE_RATE:
            track.parts[-1] = _silence(rng.uniform(*LAST_SILENCE))
        samples = np.concatenate(track.parts)
        if rng.random() < 0.06 * difficulty.level:
            # The stream breaks off: no end of utterance may be claimed.
            utterances[-1].closed = False
            samples = samples[: int((utterances[-1].words[-1].end + rng.uniform(0.02, 0.12)) * SAMPLE_RATE)]
        samples = samples[: int(MAX_SECONDS * SAMPLE_RATE)]
        _keep_heard(utterances, len(samples) / SAMPLE_RATE)
        return self._distorted(samples, utterances, difficulty, gated=track.gate is not None)

    def _draw_gate(self) -> Gate:
        hiss = stationary_noise(int(MAX_SECONDS * SAMPLE_RATE), self._rng, self._noise)
        return Gate(hiss, 10 ** (self._rng.uniform(*GATE_DB) / 20))

    def _say(self, track: _Track, difficulty: Difficulty) -> list[Word]:
        rng = self._rng
        easy = rng.random() < difficulty.easy
        shares = UTTERANCES
        if easy:
            shares = FIRST_UTTERANCES if rng.random() < difficulty.first else EASY_UTTERANCES
        kinds = [kind for kind in shares if JOINED_POOLS.get(kind, kind) in self._pools]
        kind = rng.choices(kinds, [shares[kind] for kind in kinds])[0]
        if kind in JOINED_LENGTHS:
            return self._say_joined(kind, track, difficulty)
        for _ in range(20):
            clip = self._library.draw(kind, rng)
            if len(clip.samples) < (EASY_SECONDS if easy else 11.0) * SAMPLE_RATE:
                break
        return self._say_clip(track, clip, self._draw_speed(difficulty))

    def _draw_speed(self, difficulty: Difficulty) -> float:
        if self._rng.random() > max(0.3, difficulty.level):
            return 1.0
        return self._rng.uniform(0.82, 1.24)

    def _say_clip(self, track: _Track, clip: Clip, speed: float) -> list[Word]:
        rng = self._rng
        cut, late = clip.samples, 0
        if rng.random() < 0.2 and len(cut) > 0.25 * SAMPLE_RATE:  # clumsily trimmed, as recordings are
            late = rng.randrange(600)
            cut = cut[late : len(cut) - rng.randrange(800)]
        samples = _faded(augment.change_speed(cut, speed)) * rng.uniform(0.5, 1.0)
        seconds = len(samples) / SAMPLE_RATE
        ahead = 0
        if track.gate:
            ahead, behind = (rng.randrange(int(GATE_MARGIN * SAMPLE_RATE)) for _ in range(2))
            samples = track.gate.opened(samples, ahead, behind, rng.randrange(SAMPLE_RATE))
        start = track.append(samples.astype(np.float32)) + ahead / SAMPLE_RATE
        return _word_times(clip, late / SAMPLE_RATE, start, seconds, speed)

    def _say_joined(self, kind: str, track: _Track, difficulty: Difficulty) -> list[Word]:
        """Digits, a code or a list of anything, joined from single words of one speaker."""
        rng = self._rng
        source, speaker = self._library.draw_speaker(JOINED_POOLS[kind], rng)
        count = min(draw_count(rng, JOINED_LENGTHS[kind]), difficulty.max_words)
        pools = CODE_POOLS if kind == "code" else (JOINED_POOLS[kind],)
        speed = self._draw_speed(difficulty)
        tight = rng.uniform(0.03, SHORT_PAUSE)
        words: list[Word] = []
        last: Clip | None = None
        for i in range(count):
            if i:
                long_pause = rng.random() < LONG_PAUSE_SHARE * difficulty.level
                track.append(_silence(rng.uniform(*LONG_PAUSE) if long_pause else rng.uniform(0.005, tight)))
            clip = self._next_word(source, speaker, rng.choice(pools), last)
            if clip is None:
                break
            words += self._say_clip(track, clip, speed * rng.uniform(0.95, 1.05))
            last = clip
            if track.seconds > MAX_SECONDS - 2.0:
                break
        return words or self._say_clip(track, self._library.draw("word", rng), speed)

    def _next_word(self, source: str, speaker: str, pool: str, last: Clip | None) -> Clip | None:
        """A word of the speaker, each text equally often; one in eight is said twice in a row.

        A word said twice is what a transducer drops first, and numbers that people choose are full of them.
        """
        rng = self._rng
        clips = self._library.clips(source, pool, speaker)
        if not clips:
            return last
        if last is not None and rng.random() < 0.12:
            return rng.choice([clip for clip in clips if clip.text == last.text] or [last])
        if len(clips) < 400:  # real speakers and small pools: balance the texts
            text = rng.choice(sorted({clip.text for clip in clips}))
            return rng.choice([clip for clip in clips if clip.text == text])
        return rng.choice(clips)

    def _distorted(
        self, samples: Samples, utterances: list[Utterance], difficulty: Difficulty, *, gated: bool
    ) -> Stream:
        rng, level = self._rng, difficulty.level

        def happens(probability: float) -> bool:
            return rng.random() < probability * level

        if happens(0.3):
            samples = augment.in_room(samples, rng, self._noise)
        if happens(0.4):
            samples = augment.coloured(samples, rng)
        peak = rng.uniform(-2.75, -1.4) if happens(0.15) else rng.uniform(-1.4, 0)
        samples = samples * np.float32(10**peak / max(float(np.abs(samples).max()), 1e-3))
        if happens(0.55):
            sound = self._bank.draw(len(samples), rng, self._noise)
            if rng.random() < 0.35:
                sound = on_and_off(sound, rng)
            samples = augment.mix_noise(samples, sound, rng.choice([rng.uniform(4, 18), rng.uniform(12, 40)]))
        elif not gated and rng.random() < 0.6:  # a quiet line; otherwise the silence stays digital zero
            hiss = stationary_noise(len(samples), rng, self._noise)
            samples = samples + hiss * np.float32(10 ** rng.uniform(-4.7, -2.7))
        if happens(0.06):
            samples = augment.overdriven(samples, rng)
        band = 8000
        if rng.random() < 0.55:
            band = 4000
            samples = augment.through_telephone(samples, mu_law=rng.random() < 0.4)
        if happens(0.08):
            samples = augment.with_offset(samples, rng)
        if utterances and utterances[-1].closed and rng.random() < 0.25:
            # The recording ends just behind the last word and a server feeds zeros to bring the end out.
            samples = samples.copy()
            samples[int((utterances[-1].words[-1].end + rng.uniform(0.0, 0.2)) * SAMPLE_RATE) :] = 0.0
        warp = rng.uniform(*WARP) if rng.random() < WARPED_SHARE else 1.0
        return Stream(np.clip(samples, -1, 1).astype(np.float32), utterances, warp, band)

    def _noise_stream(self) -> Stream:
        rng = self._rng
        count = int(rng.uniform(2.0, 12.0) * SAMPLE_RATE)
        sound = self._bank.draw(count, rng, self._noise)
        if rng.random() < 0.2:
            sound = sound + rng.uniform(0.1, 1.0) * self._bank.draw(count, rng, self._noise)[: len(sound)]
        if rng.random() < 0.35:
            sound = on_and_off(sound, rng)
        samples = (sound * 10 ** rng.uniform(-4.5, -0.5)).astype(np.float32)
        if rng.random() < 0.1:
            samples = augment.with_offset(samples, rng)
        if rng.random() < 0.5:
            samples = augment.through_telephone(samples, mu_law=rng.random() < 0.4)
        if rng.random() < 0.04:
            samples = np.zeros_like(samples)
        return Stream(np.clip(samples, -1, 1).astype(np.float32), [])
