"""Composes the streams: turns of one speaker with known begin, pause and end, over a floor of sound.

Everything follows from the recordings and the seed. Each group of streams has its own random numbers, so that a
condition more or less does not change the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from parakeet_live.audio.files import RATE
from parakeet_live.evaluation.endpointing.material import SPEECH_DBFS, MaterialError, Phrase, Recording
from parakeet_live.evaluation.endpointing.scenes import QUIET, Floor, Plan
from parakeet_live.evaluation.endpointing.sounds import make_sound
from parakeet_live.evaluation.endpointing.telephone import through_telephone
from parakeet_models.mel import Float32

TURNS_PER_STREAM = 5
JOINED_MS = (60, 180)
"""Natural silence between words that are joined to one utterance."""
JOINED_SPEECH_MS = 1200
"""Recordings with less speech than this are words, which can be joined to utterances."""
WORDS = (2, 6)
"""Fewest and most words in such an utterance."""
LEAD_IN_MS = (600, 1200)
GAP_MS = (3600, 4200)
"""Silence after each turn: longer than any preset waits. Drawn, so that ends fall anywhere in a step."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. Times in milliseconds of its stream: true begin and end of the speech."""

    begin_ms: int
    end_ms: int
    pause_ms: int
    """Length of the pause made inside it, 0 for none."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is said in one stream, and over what. Its samples are made when they are wanted: all would fill memory."""

    group: str
    """What it belongs to: ``pauses``, ``floors`` or ``backgrounds``."""
    floor: Floor
    length: int
    """Samples at 16 kHz."""
    seed: tuple[int, int]
    """Of its floor."""
    turns: tuple[Turn, ...] = ()
    phrases: tuple[tuple[int, Phrase], ...] = ()
    """Each with the sample number at which it is put."""

    @property
    def milliseconds(self) -> int:
        return self.length * 1000 // RATE

    def samples(self) -> Float32:
        """float32[length] at 16 kHz, the same at every call."""
        samples = np.zeros(self.length, np.float32)
        for at, phrase in self.phrases:
            samples[at : at + len(phrase.samples)] += phrase.samples
        if self.floor.sound is not None:
            level = np.float32(10 ** ((SPEECH_DBFS - self.floor.below_speech_db) / 20))
            rng = np.random.default_rng(self.seed)
            samples += level * make_sound(self.floor.sound, self.length, rng)
        if self.floor.telephone:
            samples = through_telephone(np.clip(samples, -1, 1))
        return np.clip(samples, -1, 1)


T = TypeVar("T")
Spoken = list[tuple[Phrase, int]]
"""Phrases of an utterance, each with the silence before it in milliseconds (0 for the first)."""


class Composer:
    """Draws utterances from the recordings."""

    def __init__(self, material: dict[str, list[Recording]]) -> None:
        self._material = material
        self._pausable = [
            speaker
            for speaker, recordings in material.items()
            if any(len(recording.phrases) > 1 for recording in recordings)
            or sum(_is_word(recording) for recording in recordings) > 1
        ]
        if not self._pausable:
            raise MaterialError(
                "no speaker with two short recordings or one with a pause in it: a pause needs words on both sides"
            )

    def streams(self, plan: Plan) -> list[Stream]:
        """Every stream of a plan."""
        return [*self._pauses(plan), *self._floors(plan), *self._backgrounds(plan)]

    def _pauses(self, plan: Plan) -> Iterator[Stream]:
        for pause in plan.pauses_ms:
            rng = np.random.default_rng(_seed(plan, f"pause {pause}"))
            speakers = _Deck(self._pausable, rng)
            for index, count in enumerate(_shares(plan.turns)):
                speaker = self._material[speakers.draw()]
                spoken = [(_with_pause(speaker, pause, rng), pause) for _ in range(count)]
                yield _compose("pauses", QUIET[index % len(QUIET)], spoken, rng)

    def _floors(self, plan: Plan) -> Iterator[Stream]:
        for floor in plan.floors:
            rng = np.random.default_rng(_seed(plan, f"floor {floor.name}"))
            speakers = _Deck(list(self._material), rng)
            for count in _shares(plan.turns):
                recordings = _Deck(self._material[speakers.draw()], rng)
                spoken = [(_as_recorded(recordings.draw()), 0) for _ in range(count)]
                yield _compose("floors", floor, spoken, rng)

    def _backgrounds(self, plan: Plan) -> Iterator[Stream]:
        for background in plan.backgrounds:
            for number in range(background.streams):
                seed = _seed(plan, f"background {background.floor.name} {number}")
                yield Stream("backgrounds", background.floor, background.seconds * RATE, seed)


class _Deck(Generic[T]):
    """Draws without putting back, and shuffles anew when all were drawn."""

    def __init__(self, items: Sequence[T], rng: np.random.Generator) -> None:
        self._items = items
        self._rng = rng
        self._left: list[int] = []

    def draw(self) -> T:
        if not self._left:
            self._left = self._rng.permutation(len(self._items)).tolist()
        return self._items[self._left.pop()]


def _seed(plan: Plan, name: str) -> tuple[int, int]:
    return plan.seed, zlib.crc32(name.encode())


def _shares(turns: int) -> list[int]:
    """``turns`` in streams of TURNS_PER_STREAM."""
    full, rest = divmod(turns, TURNS_PER_STREAM)
    return [TURNS_PER_STREAM] * full + ([rest] if rest else [])


def _is_word(recording: Recording) -> bool:
    return len(recording.phrases) == 1 and recording.speech_ms <= JOINED_SPEECH_MS


def _as_recorded(recording: Recording) -> Spoken:
    return [*zip(recording.phrases, (0, *recording.pauses_ms), strict=True)]


def _with_pause(recordings: Sequence[Recording], pause_ms: int, rng: np.random.Generator) -> Spoken:
    """An utterance with one pause of ``pause_ms`` in it (0: without): a recording drawn apart where it has a pause of
    its own, or words joined."""
    paused = [recording for recording in recordings if len(recording.phrases) > 1]
    words = [recording.phrases[0] for recording in recordings if _is_word(recording)]
    if paused and (len(words) < 2 or rng.random() < len(paused) / (len(paused) + len(words))):
        spoken = _as_recorded(paused[int(rng.integers(len(paused)))])
    else:
        count = int(rng.integers(WORDS[0], WORDS[1] + 1))
        picked = [words[int(rng.integers(len(words)))] for _ in range(count)]
        spoken = [(word, int(rng.integers(*JOINED_MS)) if index else 0) for index, word in enumerate(picked)]
    if pause_ms:
        at = int(rng.integers(1, len(spoken)))
        spoken[at] = (spoken[at][0], pause_ms)
    return spoken


def _compose(
    group: str, floor: Floor, spoken: Sequence[tuple[Spoken, int]], rng: np.random.Generator
) -> Stream:
    position = _drawn_samples(LEAD_IN_MS, rng)
    placed: list[tuple[int, Phrase]] = []
    turns: list[Turn] = []
    for phrases, pause_ms in spoken:
        begin = end = position
        for phrase, before_ms in phrases:
            start = end + before_ms * RATE // 1000
            placed.append((start - phrase.begin, phrase))
            end = start + phrase.end - phrase.begin
        turns.append(Turn(begin * 1000 // RATE, end * 1000 // RATE, pause_ms))
        position = end + _drawn_samples(GAP_MS, rng)
    seed = (int(rng.integers(1 << 32)), 0)
    return Stream(group, floor, position, seed, tuple(turns), tuple(placed))


def _drawn_samples(range_ms: tuple[int, int], rng: np.random.Generator) -> int:
    low, high = range_ms
    return int(rng.integers(low * RATE // 1000, high * RATE // 1000))
