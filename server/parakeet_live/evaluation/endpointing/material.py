"""Recordings cut into phrases whose true begin and end are known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parakeet_live.audio.files import RATE, read_blocks
from parakeet_live.evaluation.manifest import Clip
from parakeet_live.evaluation.speech import speech_runs
from parakeet_models.mel import Float32

SPEECH_DBFS = -26.0
"""Level that all speech is brought to: root mean square over the speech, in dB of full scale."""
SPLIT_MS = 150
"""Silence inside a recording from this length on separates phrases; the closure of a plosive is shorter."""
LEAD_MS, TAIL_MS = 30, 60
"""Kept of the recording before and after the speech, faded, so that neither breath nor decay is chopped."""
LONGEST_SECONDS = 8.0
"""Longer recordings are left out: they are texts, not turns of a conversation."""


class MaterialError(Exception):
    """The recordings are not enough for the benchmark; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Speech without a pause. ``samples`` float32[n] at 16 kHz; speech from ``begin`` to ``end`` (sample numbers)."""

    samples: Float32
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What one recording holds: phrases in their order, and the natural pauses between them in milliseconds."""

    phrases: tuple[Phrase, ...]
    pauses_ms: tuple[int, ...]

    @property
    def speech_ms(self) -> int:
        return sum(phrase.end - phrase.begin for phrase in self.phrases) * 1000 // RATE


def load_material(clips: Sequence[Clip]) -> dict[str, list[Recording]]:
    """Usable recordings of each speaker. Raises MaterialError if there are none, AudioFileError if one is broken."""
    speakers: dict[str, list[Recording]] = defaultdict(list)
    for clip in clips:
        samples = np.concatenate([np.empty(0, dtype=np.float32), *read_blocks(clip.audio)])
        if len(samples) <= LONGEST_SECONDS * RATE and (recording := cut(samples)):
            speakers[clip.speaker].append(recording)
    if not speakers:
        raise MaterialError(
            f"no recording with speech of at most {LONGEST_SECONDS:g} s: the benchmark is made of short ones"
        )
    return dict(sorted(speakers.items()))


def cut(samples: Float32) -> Recording | None:
    """The phrases of float32[n] at 16 kHz, at one level; None where there is no speech."""
    runs = speech_runs(samples, RATE, longest_gap_ms=SPLIT_MS)
    if not runs:
        return None
    speech = np.concatenate([samples[_samples(begin) : _samples(end)] for begin, end in runs])
    gain = 10 ** (SPEECH_DBFS / 20) / float(np.sqrt(np.mean(speech.astype(np.float64) ** 2)))
    phrases = tuple(_phrase(samples * np.float32(gain), begin, end) for begin, end in runs)
    pauses = tuple(after[0] - before[1] for before, after in pairwise(runs))
    return Recording(phrases, pauses)


def _phrase(samples: Float32, begin_ms: int, end_ms: int) -> Phrase:
    first = max(0, _samples(begin_ms - LEAD_MS))
    last = min(len(samples), _samples(end_ms + TAIL_MS))
    kept = samples[first:last].copy()
    begin, end = _samples(begin_ms) - first, min(_samples(end_ms), last) - first
    kept[:begin] *= np.linspace(0, 1, begin, dtype=np.float32)
    kept[end:] *= np.linspace(1, 0, len(kept) - end, dtype=np.float32)
    return Phrase(kept, begin, end)


def _samples(milliseconds: int) -> int:
    return milliseconds * RATE // 1000
