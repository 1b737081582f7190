"""All clips in memory, sorted by source, voice and kind; new shards are picked up while training runs."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

from .clips import SAMPLE_RATE, Clip, Samples, read_shard
from .grammar import SPOKEN_DIGITS

Kind = Literal["digit", "string", "answer"]

SOURCE_WEIGHTS: dict[str, float] = {
    "real": 0.38, "kokoro": 0.34, "flite": 0.1, "hibari": 0.08, "piper": 0.05, "espeak": 0.05,
}  # fmt: skip
"""Share of the utterances by source. Two real speakers are worth more than any number of synthetic hours, and
no synthetic voice may dominate; espeak is for robustness only."""


def kind_of(clip: Clip) -> Kind:
    """What a clip can be used for."""
    if all(word in SPOKEN_DIGITS for word in clip.words):
        return "digit" if len(clip.words) == 1 else "string"
    return "answer"


def speaker_of(clip: Clip) -> str:
    """The voice a clip is grouped under: a mix of two Kokoro voices counts as the first of them."""
    return clip.voice.split("+")[0]


class ClipLibrary:
    """Clips by source → kind → speaker."""

    def __init__(self, recordings: Iterable[Clip], shards: Path | None) -> None:
        self._clips: dict[str, dict[Kind, dict[str, list[Clip]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        self._shards = shards
        self._seen: set[Path] = set()
        self.seconds: dict[str, float] = defaultdict(float)
        self.counts: dict[str, int] = defaultdict(int)
        for clip in recordings:
            self._add(clip)
        self.refresh()

    def _add(self, clip: Clip) -> None:
        self._clips[clip.source][kind_of(clip)][speaker_of(clip)].append(clip)
        self.seconds[clip.source] += len(clip.samples) / SAMPLE_RATE
        self.counts[clip.source] += 1

    def refresh(self) -> int:
        """Read the shards that have appeared since; returns how many."""
        if self._shards is None:
            return 0
        new = sorted(set(self._shards.glob("*/*.json")) - self._seen)
        for path in new:
            for clip in read_shard(path):
                self._add(clip)
            self._seen.add(path)
        return len(new)

    def draw_source(self, kind: Kind, rng: random.Random) -> str:
        """A source that has clips of `kind`, by weight."""
        sources = [source for source in self._clips if self._clips[source][kind]]
        return rng.choices(sources, [SOURCE_WEIGHTS.get(source, 0.05) for source in sources])[0]

    def draw_speaker(self, source: str, kind: Kind, rng: random.Random) -> list[Clip]:
        """All clips of `kind` by one speaker; a speaker with few clips is drawn less, but not in proportion."""
        speakers = self._clips[source][kind]
        names = list(speakers)
        return speakers[rng.choices(names, [len(speakers[name]) ** 0.5 for name in names])[0]]

    def babble(self, seconds: int, rng: random.Random) -> Samples:
        """Several voices talking at once, unit power: background noise nobody should transcribe."""
        mixed = np.zeros(seconds * SAMPLE_RATE, np.float32)
        everyone = [
            clip
            for kinds in self._clips.values()
            for voices in kinds.values()
            for v in voices.values()
            for clip in v
        ]
        for _ in range(int(3.0 * seconds * SAMPLE_RATE / np.mean([len(c.samples) for c in everyone]))):
            clip = rng.choice(everyone)
            start = rng.randrange(max(1, len(mixed) - len(clip.samples)))
            piece = clip.samples[: len(mixed) - start]
            mixed[start : start + len(piece)] += piece
        return np.asarray(mixed / (np.sqrt(np.mean(mixed**2)) + 1e-9), np.float32)
