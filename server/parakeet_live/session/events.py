"""What a session reports, as small frozen dataclasses. Times are integer milliseconds of *audio* time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Reason(StrEnum):
    """Why a final was committed."""

    EOU = "eou"
    """The model emitted its end-of-utterance token, and no speech followed."""
    BACKCHANNEL = "backchannel"
    """The model emitted its end-of-backchannel token: a short acknowledgement such as "uh-huh" ended."""
    VAD = "vad"
    """No end-of-utterance token came, but no words either, and the voice detector heard no voice."""
    SILENCE = "silence"
    """No end-of-utterance token came, but no words either, for so long that it did not matter what the voice
    detector heard."""
    MAX_LENGTH = "max_length"
    """The utterance had its greatest length, and the next word began."""
    FINALIZE = "finalize"
    """The client asked for it."""
    NO_AUDIO = "no_audio"
    """The client sent no audio for some time."""
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
class SpeechStarted:
    """A voice is heard, or a first word came, where there was none before. No text need follow."""

    audio_ms: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time went between the arrival of the audio that decided and the result, in wall-clock milliseconds."""

    queue_ms: int
    """Until its step began: steps before it, and other streams."""
    compute_ms: int
    """In the step, including the other streams of its batch."""
    total_ms: int


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of the utterance so far. Append-only: it starts with the text of the partial before it."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    """Audio time covered when this text was known."""


@dataclass(frozen=True, slots=True)
class Eou:
    """The eager end: the model says that the utterance is over. A Final follows unless it is resumed."""

    utterance: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Speech went on after an eager end; the utterance goes on, and its text with it."""

    utterance: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class Final:
    """The text of an utterance that will not change again; it starts with the text of its last partial."""

    utterance: int
    text: str
    words: tuple[Word, ...]
    audio_ms: int
    """Audio time of the decision."""
    reason: Reason
    eou_ms: int | None = None
    """Audio time of the model's end of utterance, if it came and no word after it."""
    timing: Timing | None = field(default=None, compare=False, kw_only=True)
    """Measured where the stream runs in real time; no part of what was said."""

    @property
    def speech_end_ms(self) -> int | None:
        """End of the last word, None without words."""
        return self.words[-1].end_ms if self.words else None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What was pending has been dropped, as the client asked; the next speech begins a new utterance."""

    audio_ms: int
    """Length of the audio received."""


@dataclass(frozen=True, slots=True)
class Done:
    """The stream has ended and everything was reported: the last event of every session."""

    audio_ms: int
    """Length of the audio received."""
    utterances: int
    """Finals sent with text."""


Event = SpeechStarted | Partial | Eou | Resumed | Final | Cancelled | Done
