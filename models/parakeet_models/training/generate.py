"""Generate the synthetic clips, shard by shard; what is already there is kept.

The clips of a shard depend on (seed, engine, worker, shard number) alone, so an interrupted run continues where
it was and two workers never say the same thing.
"""

from __future__ import annotations

import logging
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .clips import Clip, write_shard
from .grammar import draw_answer, draw_count, draw_digits
from .synthesis import Engine, make_engine

log = logging.getLogger(__name__)

CLIPS_PER_SHARD = 60
_STRING_LENGTHS = ((2, 3.0), (3, 3.0), (4, 3.0), (5, 1.5), (6, 1.0), (7, 1.0))


@dataclass(frozen=True)
class Quota:
    """How many clips an engine makes, and of what kind."""

    engine: str
    clips: int
    digit_share: float = 0.55
    """Isolated digits: strings are built from them when the streams are composed."""
    string_share: float = 0.22
    """Digit strings spoken in one go; the rest are short answers."""


QUOTAS: tuple[Quota, ...] = (
    Quota("hibari", 3600, digit_share=0.4, string_share=0.3),
    Quota("flite", 5400, digit_share=0.4, string_share=0.3),
    Quota("espeak", 2400),
    Quota("piper", 900),
    Quota("kokoro", 7200, digit_share=0.5, string_share=0.25),
)
"""About 3.5 hours of speech. On one core: kokoro one hour, piper 5 minutes, all others together 5 minutes."""


def draw_text(quota: Quota, rng: random.Random) -> str:
    """What the next clip says."""
    share = rng.random()
    if share < quota.digit_share:
        return draw_digits(rng, 1)[0]
    if share < quota.digit_share + quota.string_share:
        return " ".join(draw_digits(rng, draw_count(rng, _STRING_LENGTHS)))
    return draw_answer(rng)


def _next_clip(engine: Engine, quota: Quota, rng: random.Random) -> Clip | None:
    text = draw_text(quota, rng)
    try:
        return engine.speak(text, rng)
    except subprocess.CalledProcessError as error:
        log.warning("%s could not say %r: %s", quota.engine, text, error)
        return None


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
        for _ in range(3 * CLIPS_PER_SHARD):
            clip = _next_clip(engine, quota, rng)
            if clip is not None:
                clips.append(clip)
            if len(clips) == CLIPS_PER_SHARD:
                break
        write_shard(path, clips)
        log.info(
            "%s %s: %.0f s of speech", quota.engine, path.stem, sum(len(c.samples) for c in clips) / 16_000
        )
