"""Which sound is heard when: a second target of the training, far denser than words.

With one class per word a network learns from some two labels a second, and has to learn 600 words one by one. Which of
39 sounds is heard is the same question for all of them, and is asked fifty times a second. The head that answers it
sits in the middle of the encoder and is not part of the result. The times come from `alignment`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .streams import Utterance

SOUNDS = (
    "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY",
    "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y",
    "Z", "ZH",
)  # fmt: skip
"""The 39 sounds of the CMU dictionary, without stress."""

QUIET = len(SOUNDS)
"""The class of what is no speech."""

IGNORED = -100
"""Target of what no loss looks at."""

SLOTS = 4
"""Moments an encoder frame is asked about."""

LATE_S = 0.06
"""How long after a sound the network is asked for it: a causal one must hear its end."""

Sound = tuple[int, float, float]
"""Index into `SOUNDS`, start and end in seconds."""


def sound_targets(frames: int, utterances: Iterable[Utterance], frame_s: float) -> np.ndarray:
    """int64[frames, SLOTS]: the sound at each slot's moment, `QUIET`, or `IGNORED` in words that were not aligned.

    Frame k ends at k * frame_s; its slots are the last SLOTS equal parts of frame_s before `LATE_S` before that.
    """
    slot_s = frame_s / SLOTS
    found = np.full((frames + 2) * SLOTS, QUIET, np.int64)
    offset = SLOTS + LATE_S / slot_s  # slots before the stream begins

    def place(second: float) -> int:
        return min(len(found), max(0, round(second / slot_s + offset)))

    for utterance in utterances:
        for word in utterance.words:
            if not word.sounds:
                found[place(word.start) : place(word.end)] = IGNORED
            for sound, start, end in word.sounds:
                found[place(start) : place(end)] = sound
    return found[: frames * SLOTS].reshape(frames, SLOTS)
