"""Messages of the native protocol, version 1, as they go over the wire. docs/protocol.md explains them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from parakeet_live.audio.formats import MAX_CHANNELS, MAX_RATE, MIN_RATE, Encoding
from parakeet_live.dialects.options import Endpointing, StreamOptions
from parakeet_live.session.events import Reason

PROTOCOL_VERSION: Literal[1] = 1


class CloseCode:
    """Codes of the closing handshake that the server uses (RFC 6455, section 7.4)."""

    NORMAL = 1000
    GOING_AWAY = 1001
    UNSUPPORTED_DATA = 1003
    ABNORMAL = 1006
    """Never sent: the connection ended without a close frame."""
    INVALID_TEXT = 1007
    POLICY = 1008
    INTERNAL_ERROR = 1011
    SERVICE_RESTART = 1012
    TRY_AGAIN_LATER = 1013
    # From the range that RFC 6455 leaves to applications: the HTTP status that the same refusal would have, plus 4000.
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    LIMIT_REACHED = 4429
    BAD_GATEWAY = 1014
    """Not used by this server: proxies say it."""
    IDLE = 4001
    SESSION_LIMIT = 4002
    SUPERSEDED = 4003


class ErrorCode(StrEnum):
    """What went wrong, for programs; the message beside it is for people."""

    WRONG_PATH = "wrong_path"
    BAD_PARAMETER = "bad_parameter"
    SERVER_FULL = "server_full"
    DRAINING = "draining"
    RESUME_FAILED = "resume_failed"
    NOT_READY = "not_ready"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN_ORIGIN = "forbidden_origin"
    KEY_LIMIT = "key_limit"
    UNSUPPORTED_CONTAINER = "unsupported_container"
    UNSUPPORTED_WAV = "unsupported_wav"
    FORMAT_MISMATCH = "format_mismatch"
    AUDIO_AFTER_WAV = "audio_after_wav"
    BAD_MESSAGE = "bad_message"
    TOO_MANY_ERRORS = "too_many_errors"
    TELEPHONY_ENVELOPE = "telephony_envelope"
    SLOW_READER = "slow_reader"
    ENGINE_FAILED = "engine_failed"
    INTERNAL_ERROR = "internal_error"


class WarningCode(StrEnum):
    """What a client should know while its session goes on."""

    LAGGING = "lagging"
    DRAINING = "draining"
    IDLE = "idle"
    SESSION_ENDING = "session_ending"
    AUDIO_OUTRUNS_CLOCK = "audio_outruns_clock"
    AUDIO_LAGS_CLOCK = "audio_lags_clock"
    LOOKS_LIKE_FLOAT = "looks_like_float"
    LOOKS_LIKE_INT16 = "looks_like_int16"
    LOOKS_LIKE_BIG_ENDIAN = "looks_like_big_endian"
    LOOKS_LIKE_STEREO = "looks_like_stereo"
    LOOKS_LIKE_NOISE = "looks_like_noise"


class EndReason(StrEnum):
    """Why a session came to its end."""

    END = "end"
    """The client said so."""
    DRAINING = "draining"
    """The server is stopping."""
    IDLE_TIMEOUT = "idle_timeout"
    """The client sent nothing for ``idle_timeout_ms``."""
    SESSION_LIMIT = "session_limit"
    """The session was open for ``max_session_ms``."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NumberedMessage(_Message):
    """A message that belongs to the session and not to the connection: it survives a reconnect."""

    seq: int = Field(
        ge=1,
        description="Number in the session, rising; a partial that gave way to a newer one leaves a gap.",
    )


class Limits(_Message):
    """Limits of one connection"""

    max_frame_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=4096,
        le=1024 * 1024 * 1024,
        description="Largest WebSocket message the server takes; a larger one closes the connection (1009).",
    )
    max_control_bytes: int = Field(
        default=64 * 1024,
        ge=1024,
        le=16 * 1024 * 1024,
        description="Largest JSON text message the server reads; a larger one is answered by an error.",
    )
    max_backlog_ms: int = Field(
        default=10_000,
        ge=1000,
        le=3_600_000,
        description="Audio received but not yet recognised; beyond it the server stops reading the socket.",
    )
    max_bad_messages: int = Field(
        default=10,
        ge=0,
        le=1_000_000,
        description="Text messages that are not understood; one more closes the connection (1008).",
    )
    max_unsent_messages: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Messages waiting for a client that does not read; one more closes it (1008).",
    )


class Word(_Message):
    """A word with its times, in milliseconds of the audio received, and a confidence from 0 to 1."""

    text: str
    start_ms: int = Field(ge=0)
    end_ms: int = Field(ge=0)
    confidence: float = Field(ge=0, le=1)


class Ready(_Message):
    """First message of every session that was not refused."""

    type: Literal["ready"] = "ready"
    protocol: Literal[1] = PROTOCOL_VERSION
    session: str = Field(description="Identifies this session in the server's log.")
    resume_token: str | None = Field(
        description="Continues this session on another connection: /v1/stream?resume=TOKEN&seen=SEQ. Keep it secret. "
        "None: sessions of this server end with their connection."
    )
    resume_window_ms: int = Field(
        ge=0,
        description="How long the session waits for that after a connection was lost; 0 without a token.",
    )
    resumed: bool = Field(description="True if this connection continues an earlier one.")
    audio_bytes: int = Field(
        ge=0, description="Bytes of binary messages received so far: send on from there."
    )
    controls: int = Field(ge=0, description="Control messages received so far, without `keepalive`.")
    idle_timeout_ms: int = Field(
        ge=0, description="The session ends after this time without audio or `keepalive`; 0: never."
    )
    max_session_ms: int = Field(ge=0, description="The session ends after this time; 0: never.")
    model: str
    languages: list[str]
    encoding: Encoding = Field(description="How raw audio is read, unless a WAV header says otherwise.")
    sample_rate: int = Field(ge=MIN_RATE, le=MAX_RATE)
    channels: int = Field(ge=1, le=MAX_CHANNELS)
    step_ms: int = Field(gt=0, description="Audio per recognition step: partials come at most this often.")
    endpointing: Endpointing = Field(description="When utterances end.")
    format: list[str] = Field(description="Formatters of finals, in the order in which they are applied.")
    limits: Limits


class SpeechStarted(NumberedMessage):
    """A voice is heard, or a first word came, after silence. Only on request; no text need follow."""

    type: Literal["speech_started"] = "speech_started"
    audio_ms: int = Field(ge=0, description="Audio heard at the decision.")


class Partial(NumberedMessage):
    """The text of the utterance so far. It only grows: it begins with the text of the partial before it."""

    type: Literal["partial"] = "partial"
    utterance: int = Field(ge=0, description="Number of the utterance in this session.")
    text: str
    words: list[Word]
    audio_ms: int = Field(ge=0, description="Audio covered when this text was known.")


class Eou(NumberedMessage):
    """The eager end: the model says that the utterance is over. Its final follows, unless ``resumed`` comes first."""

    type: Literal["eou"] = "eou"
    utterance: int = Field(ge=0, description="Number of the utterance in this session.")
    audio_ms: int = Field(ge=0, description="Audio heard at the end of the frame that the model ended it on.")


class Resumed(NumberedMessage):
    """Speech went on after an eager end and before the final: the utterance goes on, and its text with it."""

    type: Literal["resumed"] = "resumed"
    utterance: int = Field(ge=0, description="Number of the utterance in this session.")
    audio_ms: int = Field(ge=0, description="Audio heard when the next word began.")


class Timing(_Message):
    """Where the time went between the arrival of the audio that decided and this result, by the server's clock."""

    queue_ms: int = Field(ge=0, description="Until its step began: steps before it, and other streams.")
    compute_ms: int = Field(ge=0, description="In the step, with the other streams of its batch.")
    total_ms: int = Field(ge=0, description="Both together. The way over the network is not in it.")


class Final(NumberedMessage):
    """The text of an utterance that will not change again. Joining all finals gives the whole transcript."""

    type: Literal["final"] = "final"
    utterance: int = Field(ge=0, description="Number of the utterance in this session.")
    text: str
    words: list[Word]
    audio_ms: int = Field(ge=0, description="Audio covered when this text was known.")
    reason: Reason
    speech_end_ms: int | None = Field(ge=0, description="End of the last word; null without words.")
    eou_ms: int | None = Field(
        ge=0, description="When the model ended the utterance (see `eou`); null if it did not."
    )
    commit_ms: int = Field(ge=0, description="When this final was decided on; the same as `audio_ms`.")
    formatted: str | None = Field(description="`text` made readable; null unless `format` asks for it.")
    timing: Timing | None = Field(default=None, description="null where nothing was measured.")


class Cancelled(NumberedMessage):
    """Answer to ``cancel``: what was pending is dropped, and nothing of it will come any more."""

    type: Literal["cancelled"] = "cancelled"
    audio_ms: int = Field(ge=0, description="Length of all audio received.")


class Configured(NumberedMessage):
    """Answer to ``configure``: what is in force for the audio that is sent from now on."""

    type: Literal["configured"] = "configured"
    endpointing: Endpointing
    format: list[str]


class Error(_Message):
    """Something was wrong. After a fatal error the server closes; after any other the session goes on."""

    type: Literal["error"] = "error"
    seq: int | None = Field(default=None, ge=1, description="As in results, unless the error is fatal.")
    code: ErrorCode
    message: str
    fatal: bool
    retry_after: int | None = Field(
        default=None, ge=1, description="Seconds after which another attempt makes sense, if it does at all."
    )


class Done(NumberedMessage):
    """Last message of a session; the server then closes, with code 1000 if the client has sent ``end``."""

    type: Literal["done"] = "done"
    audio_ms: int = Field(ge=0, description="Length of all audio received.")
    utterances: int = Field(ge=0, description="Finals that carried text.")
    reason: EndReason


class Ack(_Message):
    """Audio that the session has received: it need not be sent again after a reconnect."""

    type: Literal["ack"] = "ack"
    audio_bytes: int = Field(ge=0, description="Bytes of binary messages received so far.")
    audio_ms: int = Field(ge=0, description="The same as audio time.")
    controls: int = Field(ge=0, description="Control messages received so far, without `keepalive`.")


class Queued(_Message):
    """The server is full, and this client waits for a stream. ``ready`` or an ``error`` follows."""

    type: Literal["queued"] = "queued"
    position: int = Field(ge=1, description="Place in the queue; 1 is served next.")
    estimated_wait_ms: int | None = Field(ge=0, description="None while the server has nothing to judge by.")
    max_wait_ms: int = Field(ge=0, description="Longest wait from now; then comes the error `server_full`.")


class ServerWarning(_Message):
    """Something to know or to act on. The session goes on."""

    type: Literal["warning"] = "warning"
    code: WarningCode
    message: str
    details: dict[str, int] = Field(description="The numbers in the message, by name; times in milliseconds.")


class Finalize(_Message):
    """Answer now: exactly one final with reason ``finalize`` follows (its text may be empty)."""

    type: Literal["finalize"]


class Cancel(_Message):
    """Drop the current utterance and all audio that is waiting; what is sent next begins a new utterance."""

    type: Literal["cancel"]


class Configure(StreamOptions):
    """Change when utterances end, from the audio sent next on, and how finals are formatted, from the next one on."""

    type: Literal["configure"]


class End(_Message):
    """No more audio: what is pending becomes a final, then comes ``done``."""

    type: Literal["end"]


class KeepAlive(_Message):
    """Does nothing; for clients whose network path closes quiet connections."""

    type: Literal["keepalive"]


EventMessage = SpeechStarted | Partial | Eou | Resumed | Final | Cancelled | Done
ServerMessage = Annotated[
    Ready | Queued | EventMessage | Configured | Ack | ServerWarning | Error, Field(discriminator="type")
]
ClientMessage = Annotated[Finalize | Cancel | Configure | End | KeepAlive, Field(discriminator="type")]

CLIENT_MESSAGE: TypeAdapter[Finalize | Cancel | Configure | End | KeepAlive] = TypeAdapter(ClientMessage)
SERVER_MESSAGE: TypeAdapter[Ready | Queued | EventMessage | Configured | Ack | ServerWarning | Error] = (
    TypeAdapter(ServerMessage)
)


def protocol_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of all messages: ``#/$defs/ServerMessage`` and ``#/$defs/ClientMessage``."""
    roots, definitions = TypeAdapter.json_schemas(
        [("ServerMessage", "serialization", SERVER_MESSAGE), ("ClientMessage", "validation", CLIENT_MESSAGE)]
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"parakeet-live native protocol, version {PROTOCOL_VERSION}",
        "description": "JSON text messages of WS /v1/stream. Binary messages are raw audio. See protocol.md.",
        "$defs": {**{name: root for (name, _), root in roots.items()}, **definitions["$defs"]},
    }
