"""A flush: the model hears silence behind the client's audio, until it has said what it had to say."""

from __future__ import annotations

from enum import Enum, auto

FLUSH_MS = 1_280
"""Most silence appended while waiting for the model's end of utterance: four times the published p90 of its delay
(280 ms)."""
SETTLE_MS = 640
"""Silence after which a flush is over if it brought no token and there is no end of utterance to wait for."""


class Flush(Enum):
    """Why the audio so far is to be recognised to its end."""

    FINALIZE = auto()
    NO_AUDIO = auto()
    CANCEL = auto()
    END = auto()


def heard_enough(silence_ms: int, waiting: bool) -> bool:
    """True if a flush of so much silence is over. ``waiting``: the model's end of utterance may still come."""
    return silence_ms >= (FLUSH_MS if waiting else SETTLE_MS)
