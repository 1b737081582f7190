"""Judges ends of utterance: was the end found, was it early, how long after the speech did it come?

A clip of the manifest is one utterance followed by silence, so exactly one end of utterance is right: one
final with reason ``eou`` after the last word. All times are milliseconds of audio time from the clip's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parakeet_live.session.events import Final, Reason

SPEECH_BELOW_PEAK_DB = 30.0
"""Sound within this of the clip's loudest 10 ms counts as speech; the rest is breath, room or line noise."""
LEVEL_WINDOW_MS = 10


@dataclass(frozen=True, slots=True)
class Commit:
    """A final and the moment it came."""

    final: Final
    heard_ms: int
    """Audio handed over when the final came: what a live speaker waits for, computing time aside. It is later
    than ``final.audio_ms``, because the model looks ahead and works in steps."""
    live: bool
    """False where it came only because the stream ended."""


@dataclass(frozen=True, slots=True)
class EndOfUtterance:
    """How one clip was ended."""

    missed: bool
    """The text was not closed by the model's end of utterance within the silence after the clip."""
    early: bool
    """An end was committed before the speech was over: the turn was cut."""
    delay_ms: int | None
    """From the clip's last sample to the final; ``None`` where the end was missed or came too soon."""
    delay_from_speech_ms: int | None
    """From the last sound at speech level to the final; the same exceptions."""


def speech_end_ms(samples: NDArray[np.float32], rate: int) -> int:
    """End of the last window at speech level; 0 for a silent clip. ``samples``: float32[n] at ``rate`` Hz."""
    window = rate * LEVEL_WINDOW_MS // 1000
    count = -(-len(samples) // window)
    if count == 0:
        return 0
    padded = np.zeros(count * window, dtype=np.float64)
    padded[: len(samples)] = samples
    power = np.mean(padded.reshape(count, window) ** 2, axis=1)
    threshold = power.max() * 10 ** (-SPEECH_BELOW_PEAK_DB / 10)
    loud = np.flatnonzero((power >= threshold) & (power > 0))
    if len(loud) == 0:
        return 0
    return min((int(loud[-1]) + 1) * LEVEL_WINDOW_MS, len(samples) * 1000 // rate)


def judge_end(commits: Sequence[Commit], *, clip_end_ms: int, speech_end_ms: int) -> EndOfUtterance:
    """Judges all finals of one clip that was streamed with silence after it."""
    last_text = max((index for index, commit in enumerate(commits) if commit.final.text), default=-1)
    ends = [
        (index, commit)
        for index, commit in enumerate(commits)
        if commit.live and commit.final.reason is Reason.EOU
    ]
    early = any(index < last_text or commit.heard_ms < speech_end_ms for index, commit in ends)
    closing = next((commit for index, commit in ends if index >= last_text), None)
    if closing is None or closing.heard_ms < speech_end_ms:
        return EndOfUtterance(closing is None, early, delay_ms=None, delay_from_speech_ms=None)
    return EndOfUtterance(
        missed=False,
        early=early,
        delay_ms=closing.heard_ms - clip_end_ms,
        delay_from_speech_ms=closing.heard_ms - speech_end_ms,
    )
