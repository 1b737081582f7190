"""Recorded or synthesised clips, and the shards on disk that hold the synthesised ones.

A shard is a FLAC file (all clips joined, 16 kHz mono) with a JSON file of the same name that says where each
clip lies. The JSON file is written last, under its final name only when complete: a trainer that looks for new
shards while a generator is at work never sees half of one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from .sounds import Sound

SAMPLE_RATE = 16_000

Samples = npt.NDArray[np.float32]
"""Mono audio at `SAMPLE_RATE`, float32[n], full scale ±1."""


@dataclass(frozen=True)
class Clip:
    """One utterance, or one word, of one voice; its silence is trimmed off both ends."""

    samples: Samples
    text: str
    """Lower-case words separated by single spaces."""
    voice: str
    """Name of the voice, unique over all engines."""
    source: str
    """Engine or corpus: clips are weighted by source, then by voice."""
    accent: str = ""
    kind: str = ""
    """What sort of text it is (`grammar.KINDS`)."""
    times: tuple[tuple[float, float], ...] = ()
    """Start and end of each word in seconds, where the engine tells; else empty."""
    sounds: tuple[tuple[Sound, ...], ...] = ()
    """The sounds of each word, once they are aligned (`alignment`); times in seconds."""

    @property
    def words(self) -> list[str]:
        return self.text.split()

    @property
    def rushed(self) -> bool:
        """Whether a phrase is said faster than anyone speaks: over 23 characters a second."""
        return len(self.text) > 12 and len(self.samples) / SAMPLE_RATE < len(self.text) / 23


@dataclass(frozen=True)
class _Entry:
    start: int
    length: int
    text: str
    voice: str
    source: str
    accent: str
    kind: str = ""
    times: tuple[tuple[float, float], ...] = ()


def to_16k(samples: npt.ArrayLike, rate: int) -> Samples:
    """Resample mono audio of any rate to 16 kHz."""
    audio = np.asarray(samples, dtype=np.float32).reshape(-1)
    return audio if rate == SAMPLE_RATE else np.asarray(soxr.resample(audio, rate, SAMPLE_RATE), np.float32)


def speech_bounds(
    samples: Samples, margin_s: float = 0.02, floor: float = 0.02
) -> tuple[int, int, float] | None:
    """First and one past the last sample of the speech, and its peak; None if there is none to speak of.

    Silence is what stays below `floor` times the peak in frames of 10 ms; `margin_s` of it is kept.
    """
    hop = SAMPLE_RATE // 100
    frames = len(samples) // hop
    if frames < 8:
        return None
    level = np.abs(samples[: frames * hop]).reshape(frames, hop).max(axis=1)
    peak = float(level.max())
    if peak < 1e-3:
        return None
    loud = np.nonzero(level > floor * peak)[0]
    margin = int(margin_s * SAMPLE_RATE)
    first, last = max(0, int(loud[0]) * hop - margin), min(len(samples), (int(loud[-1]) + 1) * hop + margin)
    return (first, last, peak) if last - first >= 0.1 * SAMPLE_RATE else None


def trimmed(samples: Samples, margin_s: float = 0.02, floor: float = 0.02) -> Samples | None:
    """Cut the silence off both ends and scale the peak to 0.7; None if there is no speech to speak of."""
    bounds = speech_bounds(samples, margin_s, floor)
    if bounds is None:
        return None
    first, last, peak = bounds
    return np.asarray(samples[first:last] * (0.7 / peak), np.float32)


def write_shard(path: Path, clips: Sequence[Clip]) -> None:
    """Write `path` (`….json`) and the FLAC beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries: list[_Entry] = []
    position = 0
    for clip in clips:
        entries.append(
            _Entry(
                *(position, len(clip.samples), clip.text, clip.voice, clip.source, clip.accent, clip.kind),
                clip.times,
            )
        )
        position += len(clip.samples)
    soundfile.write(
        path.with_suffix(".flac"), np.concatenate([c.samples for c in clips]), SAMPLE_RATE, subtype="PCM_16"
    )
    unfinished = path.with_suffix(".json.part")
    unfinished.write_text(json.dumps([asdict(entry) for entry in entries]))
    os.replace(unfinished, path)


def read_shard(path: Path) -> list[Clip]:
    """The clips of one shard, `path` being its JSON file."""
    audio, rate = soundfile.read(path.with_suffix(".flac"), dtype="float32")
    if rate != SAMPLE_RATE:
        raise ValueError(f"{path.with_suffix('.flac')}: {rate} Hz, expected {SAMPLE_RATE}")
    return [
        Clip(
            *(audio[e.start : e.start + e.length], e.text, e.voice, e.source, e.accent, e.kind),
            tuple((start, end) for start, end in e.times),
        )
        for e in (_Entry(**raw) for raw in json.loads(path.read_text()))
    ]


def read_recordings(manifest: Path, kinds: Iterable[str] = ("digit",)) -> list[Clip]:
    """Real recordings from a JSON Lines manifest (`audio`, `text`, `speaker`, `kind` per line)."""
    wanted = set(kinds)
    clips: list[Clip] = []
    for line in manifest.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] not in wanted:
            continue
        audio, rate = soundfile.read(manifest.parent / row["audio"], dtype="float32")
        samples = trimmed(to_16k(audio, rate), floor=0.01)
        if samples is not None:
            clips.append(Clip(samples, row["text"].lower(), row["speaker"], "real"))
    return clips
