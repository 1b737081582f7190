"""Generate the synthetic clips, shard by shard; what is already there is kept.

The clips of a shard depend on (seed, engine, shard number) alone, so an interrupted run continues where it was and two
workers never say the same thing. Every shard has the whole mix of texts: generation may stop anywhere.
"""

from __future__ import annotations

import logging
import random
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .clips import Clip, write_shard
from .grammar import KINDS, words_in_turn
from .synthesis import HELD_OUT_SUFFIX, Engine, make_engine

log = logging.getLogger(__name__)

CLIPS_PER_SHARD = 60

MIX: Mapping[str, float] = {
    "word": 0.55, "string": 0.07, "spelling": 0.06, "number": 0.09, "telephone": 0.1, "command": 0.06,
    "everyday": 0.035, "salad": 0.035,
}  # fmt: skip
"""Share of the clips by kind of text. Words alone are joined into strings, codes and lists in the streams."""

SENTENCES: Mapping[str, float] = {
    "word": 0.42, "string": 0.08, "spelling": 0.07, "number": 0.12, "telephone": 0.12, "command": 0.07,
    "everyday": 0.06, "salad": 0.06,
}  # fmt: skip
"""For the engines that cost next to nothing."""


@dataclass(frozen=True)
class Quota:
    """How many clips an engine makes, and of what kinds."""

    engine: str
    clips: int
    mix: Mapping[str, float] = field(default_factory=lambda: SENTENCES)


QUOTAS: tuple[Quota, ...] = (
    Quota("hibari", 27_000),
    Quota("flite", 7200),
    Quota("espeak", 2700),
    Quota("flite" + HELD_OUT_SUFFIX, 120),
    Quota("kokoro" + HELD_OUT_SUFFIX, 120),
    Quota("piper", 2400),
    Quota("kokoro", 12_000, MIX),
)
"""About 13 hours of speech. On one core: kokoro two hours, piper 6 minutes, all others together 10 minutes."""


def texts(mix: Mapping[str, float], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Endless (kind, text) pairs."""
    words = words_in_turn(rng)
    while True:
        kind = rng.choices(list(mix), list(mix.values()))[0]
        yield kind, next(words) if kind == "word" else KINDS[kind](rng)


def _spoken_clip(engine: Engine, kind: str, text: str, rng: random.Random) -> Clip | None:
    try:
        clip = engine.speak(text, rng)
    except subprocess.CalledProcessError as error:
        log.warning("%s could not say %r: %s", engine.name, text, error)
        return None
    # Half a minute per word is no speech, and neither is a twentieth of a second.
    if clip is None or not 0.06 < len(clip.samples) / 16_000 / len(clip.words) < 2.5:
        return None
    return replace(clip, kind=kind)


def generate(
    quota: Quota,
    folder: Path,
    *,
    seed: int,
    worker: int = 0,
    workers: int = 1,
    deadline: float = float("inf"),
) -> None:
    """Write the shards of one worker, `folder/<engine>/<number>.json`, until the quota or `deadline` (epoch s)."""
    missing = [
        path
        for number in range(worker, -(-quota.clips // CLIPS_PER_SHARD), workers)
        if not (path := folder / quota.engine / f"{number:04d}.json").exists()
    ]
    if not missing:
        return
    engine = make_engine(quota.engine, folder)
    for path in missing:
        if time.time() > deadline:
            log.info("%s: out of time, %s not made", quota.engine, path.stem)
            return
        rng = random.Random(f"{seed}/{quota.engine}/{path.stem}")
        clips: list[Clip] = []
        for kind, text in texts(quota.mix, rng):
            clip = _spoken_clip(engine, kind, text, rng)
            if clip is not None:
                clips.append(clip)
            if len(clips) == CLIPS_PER_SHARD:
                break
        write_shard(path, clips)
        seconds = sum(len(clip.samples) for clip in clips) / 16_000
        log.info("%s %s: %.0f s of speech", quota.engine, path.stem, seconds)
