"""What a server reports, as frozen dataclasses. Times are milliseconds of the audio that was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    """One word with its times and a confidence from 0 to 1."""

    text: str
    start_ms: int
    end_ms: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Ready:
    """What the server says first."""

    session: str
    model: str
    languages: tuple[str, ...]
    encoding: str
    sample_rate: int
    channels: int
    step_ms: int
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of the utterance so far; it only grows until its final."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Final:
    """The text of an utterance that will not change again, and why it ended."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Error:
    """Something the server did not accept; unless fatal the session goes on."""

    code: str
    message: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of a session that was ended."""

    audio_ms: int
    utterances: int


Event = Partial | Final | Error | Done


def parse(text: str | bytes) -> Ready | Event | None:
    """A message of the server. None for types this client does not know: newer servers may send more."""
    fields: dict[str, Any] = json.loads(text)
    match fields["type"]:
        case "ready":
            return Ready(
                fields["session"],
                fields["model"],
                tuple(fields["languages"]),
                fields["encoding"],
                fields["sample_rate"],
                fields["channels"],
                fields["step_ms"],
                fields["limits"],
            )
        case "partial":
            return Partial(fields["utterance"], fields["text"], _words(fields), fields["audio_ms"])
        case "final":
            return Final(
                fields["utterance"], fields["text"], _words(fields), fields["audio_ms"], fields["reason"]
            )
        case "error":
            return Error(fields["code"], fields["message"], fields["fatal"])
        case "done":
            return Done(fields["audio_ms"], fields["utterances"])
    return None


def _words(fields: dict[str, Any]) -> tuple[Word, ...]:
    return tuple(
        Word(word["text"], word["start_ms"], word["end_ms"], word["confidence"]) for word in fields["words"]
    )
