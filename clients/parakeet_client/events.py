"""What a server reports, as frozen dataclasses. Times are milliseconds of the audio that was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
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
    resume_token: str | None = None
    """What continues this session on another connection; None if the server does not offer that."""
    resume_window_ms: int = 0
    """How long the session waits for it after a connection was lost."""
    resumed: bool = False
    audio_bytes: int = 0
    """Bytes of audio the server has received."""
    controls: int = 0
    """Control messages the server has received."""
    idle_timeout_ms: int = 0
    """The server ends the session after this time without audio; 0: never."""
    max_session_ms: int = 0
    """The server ends the session after this time; 0: never."""
    endpointing: Mapping[str, Any] = field(default_factory=dict)
    """When utterances end: the numbers in force."""
    format: Sequence[str] = ()
    """How finals are made readable."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """A voice is heard after silence; sent on request."""

    audio_ms: int


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of the utterance so far; it only grows until its final."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Eou:
    """The model says that the utterance is over: its final follows, unless Resumed comes first."""

    utterance: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Speech went on after Eou, and so does the utterance with its text."""

    utterance: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Final:
    """The text of an utterance that will not change again, and why it ended."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    reason: str
    speech_end_ms: int | None = None
    """End of the last word."""
    eou_ms: int | None = None
    """When the model ended the utterance, if it did."""
    formatted: str | None = None
    """``text`` made readable, if ``format`` asks for it."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What was pending has been dropped, as you asked."""

    audio_ms: int


@dataclass(frozen=True, slots=True)
class Configured:
    """What is in force after a change."""

    endpointing: Mapping[str, Any]
    format: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Error:
    """Something the server did not accept; unless fatal the session goes on."""

    code: str
    message: str
    fatal: bool
    retry_after: int | None = None
    """Seconds after which another attempt makes sense, if it does at all."""


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of a session. ``reason`` is "end" unless the server has ended it: "draining", for example."""

    audio_ms: int
    utterances: int
    reason: str = "end"


@dataclass(frozen=True, slots=True)
class ServerWarning:
    """Something to know or to act on; the session goes on. ``details`` are the numbers in the message."""

    code: str
    message: str
    details: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Queued:
    """The server is full and this client waits for a stream; position 1 is served next."""

    position: int
    estimated_wait_ms: int | None
    max_wait_ms: int


@dataclass(frozen=True, slots=True)
class Ack:
    """What the server has received so far."""

    audio_bytes: int
    audio_ms: int
    controls: int


@dataclass(frozen=True, slots=True)
class Reconnecting:
    """The connection was lost, for this reason. Audio is kept, and another connection is tried."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reconnected:
    """There is a connection again.

    With the same session nothing is lost and nothing comes twice. If ``restarted`` the server no longer had it: a new
    session begins at this byte of the audio, its utterances and times count from 0 again, and text of the audio before
    that had not arrived is lost.
    """

    restarted: bool
    audio_bytes: int


Event = (
    SpeechStarted
    | Partial
    | Eou
    | Resumed
    | Final
    | Cancelled
    | Configured
    | ServerWarning
    | Error
    | Reconnecting
    | Reconnected
    | Done
)


KINDS: dict[str, type[Any]] = {
    "ready": Ready,
    "queued": Queued,
    "ack": Ack,
    "speech_started": SpeechStarted,
    "partial": Partial,
    "eou": Eou,
    "resumed": Resumed,
    "final": Final,
    "cancelled": Cancelled,
    "configured": Configured,
    "warning": ServerWarning,
    "error": Error,
    "done": Done,
}
"""What the protocol calls each message."""
_NAMES: dict[type[Any], str] = {kind: name for name, kind in KINDS.items()} | {
    Reconnecting: "reconnecting",
    Reconnected: "reconnected",
}


def parse(text: str | bytes) -> Ready | Queued | Ack | Event | None:
    """A message of the server. None for types this client does not know: newer servers may send more."""
    return understand(json.loads(text))


def understand(message: Mapping[str, Any]) -> Ready | Queued | Ack | Event | None:
    """The same for the fields of a message."""
    kind = KINDS.get(message["type"])
    if kind is None:
        return None
    known = _known(kind, message)
    if "words" in known:
        known["words"] = tuple(Word(**_known(Word, word)) for word in known["words"])
    if "languages" in known:
        known["languages"] = tuple(known["languages"])
    parsed: Ready | Queued | Ack | Event = kind(**known)
    return parsed


def as_message(event: Event) -> dict[str, Any]:
    """An event as the fields of a message, for JSON."""
    return {"type": _NAMES[type(event)], **asdict(event)}


def _known(kind: Any, message: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message that this client knows."""
    names = (known.name for known in fields(kind))
    return {name: message[name] for name in names if name in message}
