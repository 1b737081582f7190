"""All clips in memory, sorted by source, kind and voice; new shards are picked up while training runs."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .alignment import AlignedClips
from .clips import SAMPLE_RATE, Clip, Samples
from .grammar import JOINABLE
from .lexicon import SPOKEN_DIGITS
from .synthesis import HELD_OUT_SUFFIX

SOURCE_WEIGHTS: dict[str, float] = {
    "real": 0.42, "kokoro": 0.46, "flite": 0.1, "hibari": 0.2, "piper": 0.08, "espeak": 0.05,
}  # fmt: skip
"""Share of the utterances by source, among those that have what is wanted (`real` has digits only). Two real speakers
are worth more than any number of synthetic hours, and no synthetic voice may dominate; espeak is for robustness."""


def kind_of(clip: Clip) -> str:
    """The kind of text, for clips that do not tell."""
    if clip.kind:
        return clip.kind
    if clip.text in JOINABLE["digit"] or len(clip.words) == 1:
        return "word"
    return "string" if all(word in SPOKEN_DIGITS for word in clip.words) else "telephone"


def speaker_of(clip: Clip) -> str:
    """The voice a clip is grouped under: a mix of two Kokoro voices counts as the first of them."""
    return clip.voice.split("+")[0]


Speakers = dict[str, list[Clip]]


class ClipLibrary:
    """Clips by source → pool → speaker. A pool is a kind of text, or `=group` for single words of a group."""

    def __init__(self, recordings: Iterable[Clip], shards: Path | None) -> None:
        self._pools: dict[str, dict[str, Speakers]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )
        self._shards = shards
        self._seen: set[Path] = set()
        self._aligned = AlignedClips()
        self.seconds: dict[str, float] = defaultdict(float)
        self.counts: dict[str, int] = defaultdict(int)
        for clip in recordings:
            self._add(clip)
        self.refresh()

    def _add(self, clip: Clip) -> None:
        if clip.rushed:
            return
        pools, speaker, kind = self._pools[clip.source], speaker_of(clip), kind_of(clip)
        pools[kind][speaker].append(clip)
        if kind == "word":
            for name, group in JOINABLE.items():
                if clip.text in group:
                    pools["=" + name][speaker].append(clip)
        self.seconds[clip.source] += len(clip.samples) / SAMPLE_RATE
        self.counts[clip.source] += 1

    def refresh(self) -> int:
        """Read the shards that have appeared since; returns how many."""
        if self._shards is None:
            return 0
        found = {path for path in self._shards.glob("*/*.json") if HELD_OUT_SUFFIX not in path.parent.name}
        new = sorted(found - self._seen)
        for path in new:
            for clip in self._aligned.shard(path):
                self._add(clip)
            self._seen.add(path)
        return len(new)

    def pools(self) -> set[str]:
        """The pools that have clips."""
        return {name for pools in self._pools.values() for name, speakers in pools.items() if speakers}

    def draw_speaker(self, pool: str, rng: random.Random) -> tuple[str, str]:
        """Source and speaker for clips of `pool`; a speaker with few clips is drawn less, but not in proportion."""
        sources = [source for source, pools in self._pools.items() if pools.get(pool)]
        source = rng.choices(sources, [SOURCE_WEIGHTS.get(name, 0.05) for name in sources])[0]
        speakers = self._pools[source][pool]
        names = list(speakers)
        return source, rng.choices(names, [len(speakers[name]) ** 0.5 for name in names])[0]

    def clips(self, source: str, pool: str, speaker: str) -> list[Clip]:
        """All clips of a speaker in a pool, maybe none."""
        return self._pools[source].get(pool, {}).get(speaker, [])

    def draw(self, pool: str, rng: random.Random) -> Clip:
        """One clip of any speaker."""
        source, speaker = self.draw_speaker(pool, rng)
        return rng.choice(self.clips(source, pool, speaker))

    def babble(self, seconds: int, rng: random.Random) -> Samples:
        """Several voices talking at once, unit power: background noise nobody should transcribe."""
        mixed = np.zeros(seconds * SAMPLE_RATE, np.float32)
        everyone = [
            clip
            for pools in self._pools.values()
            for name, speakers in pools.items()
            if not name.startswith("=")
            for clips in speakers.values()
            for clip in clips
        ]
        for _ in range(int(4.0 * seconds * SAMPLE_RATE / np.mean([len(c.samples) for c in everyone]))):
            clip = rng.choice(everyone)
            start = rng.randrange(max(1, len(mixed) - len(clip.samples)))
            piece = clip.samples[: len(mixed) - start]
            mixed[start : start + len(piece)] += piece * np.float32(rng.uniform(0.2, 1.0))
        return np.asarray(mixed / (np.sqrt(np.mean(mixed**2)) + 1e-9), np.float32)
