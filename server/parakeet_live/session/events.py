"""What a session reports, as small frozen dataclasses. Times are integer milliseconds of *audio* time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a final was committed."""

    EOU = "eou"
    """The model emitted its end-of-utterance token."""
    BACKCHANNEL = "backchannel"
    """The model emitted its end-of-backchannel token: a short acknowledgement such as "uh-huh" ended."""
    FINALIZE = "finalize"
    """The client asked for it."""
    END = "end"
    """The stream ended."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: begin and end in audio time, and the geometric mean of its tokens' probabilities."""

    text: str
    start_ms: int
    end_ms: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of the utterance so far. Append-only: it starts with the text of the partial before it."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    """Audio time covered when this text was known."""


@dataclass(frozen=True, slots=True)
class Final:
    """The text of an utterance that will not change again; it starts with the text of its last partial."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Done:
    """The stream has ended and everything was reported: the last event of every session."""

    audio_ms: int
    """Length of the audio received."""
    utterances: int
    """Finals sent with text."""


Event = Partial | Final | Done
