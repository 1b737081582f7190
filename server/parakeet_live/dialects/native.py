"""The native protocol as a state machine: what a client sends in, actions out; events in, JSON text out.

No sockets, no tasks, no clock. :mod:`parakeet_live.web.stream` connects it to a socket and a recogniser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pydantic import ValidationError

from parakeet_live.audio.decode import AudioDecoder
from parakeet_live.audio.formats import TARGET_RATE, AudioError
from parakeet_live.dialects import messages
from parakeet_live.dialects.doubts import suspicion_warning
from parakeet_live.dialects.messages import CloseCode, EndReason, ErrorCode, Limits, WarningCode
from parakeet_live.dialects.options import Endpointing, explained
from parakeet_live.dialects.query import StreamRequest
from parakeet_live.dialects.quoting import shown
from parakeet_live.dialects.rendering import message_of
from parakeet_live.formatting import UnknownFormatterError, make_final_formatter, split_names
from parakeet_live.session import events
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_models.mel import Float32

ALLOWED_MESSAGES = '{"type":"finalize"}, or one with the type cancel, configure, end or keepalive'
_LARGEST_CONTROL_IN_BINARY = 4096
"""Binary messages up to this size are checked for being a control message sent as the wrong kind of frame."""


@dataclass(frozen=True, slots=True)
class Audio:
    """Recognise these samples: float32[n], mono, 16 kHz; never empty."""

    samples: Float32


@dataclass(frozen=True, slots=True)
class Finalize:
    """Flush; the stream goes on."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Drop the current utterance and all audio that is waiting; the stream goes on."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Decide by these numbers from the audio that comes next on."""

    endpointing: EndpointingConfig


@dataclass(frozen=True, slots=True)
class End:
    """No more audio."""


@dataclass(frozen=True, slots=True)
class Result:
    """Send this text, which is message ``seq`` of the session; the session goes on."""

    seq: int
    text: str
    replaceable: bool = False
    """A partial: the next result of its utterance holds all of its text."""
    supersedes: bool = False
    """A partial or final: it holds the text of the partial before it."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Send this text, then close with this code; nothing further will be accepted."""

    text: str
    close_code: int
    reason: str
    """For the close frame, so that it can be read where only the closing is shown."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Send this text if somebody is there; it is no result."""

    text: str


Action = Warn | Audio | Finalize | Cancel | Configure | End | Result | Refuse


def refusal(code: ErrorCode, message: str, close_code: int, retry_after: int | None = None) -> Refuse:
    """A fatal error and the closing that goes with it; ``retry_after`` in seconds."""
    error = messages.Error(code=code, message=message, fatal=True, retry_after=retry_after)
    return Refuse(error.model_dump_json(), close_code, code.value)


def queued(position: int, estimated_wait: float | None, longest_wait: float) -> str:
    """The place of a client that waits for a stream; times in seconds."""
    return messages.Queued(
        position=position,
        estimated_wait_ms=None if estimated_wait is None else round(1000 * estimated_wait),
        max_wait_ms=max(0, round(1000 * longest_wait)),
    ).model_dump_json()


def warning(code: WarningCode, message: str, **details: int) -> str:
    """A warning; ``details`` are the numbers in its message."""
    return messages.ServerWarning(code=code, message=message, details=details).model_dump_json()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What ``ready`` says about the server."""

    model: str
    languages: tuple[str, ...]
    step_ms: int
    limits: Limits = field(default_factory=Limits)
    resume_window_ms: int = 0
    idle_timeout_ms: int = 0
    max_session_ms: int = 0


class NativeSession:
    """One session of the native protocol, from ``ready`` to ``done``, over one connection or several."""

    def __init__(
        self, session_id: str, request: StreamRequest, info: ServerInfo, resume_token: str | None = None
    ) -> None:
        """``resume_token`` continues the session on another connection; None if that is not possible."""
        self._session_id = session_id
        self._declared = request.audio
        self._endpointing = request.endpointing
        """What was asked for last."""
        self._formatter = request.formatter
        self._info = info
        self._resume_token = resume_token
        self._seq = 0
        """Number of the last result."""
        self._audio_bytes = 0
        """Bytes of binary messages received, whatever became of them."""
        self._samples = 0
        """The same in samples at the model's rate."""
        self._acknowledged = 0
        """Samples when the last acknowledgement was made."""
        self._controls = 0
        """Control messages taken."""
        self._end_reason = EndReason.END
        self._decoder = AudioDecoder(request.audio)
        self._over = False
        """After ``end`` or a refusal everything that arrives is dropped."""
        self._bad_messages = 0
        self._surplus_told = False

    def ready(self, *, resumed: bool = False) -> str:
        """The first message on every connection; ``resumed`` on those after the first."""
        audio = self._declared.resolve()
        return messages.Ready(
            session=self._session_id,
            resume_token=self._resume_token,
            resume_window_ms=self._info.resume_window_ms if self._resume_token else 0,
            resumed=resumed,
            audio_bytes=self._audio_bytes,
            controls=self._controls,
            idle_timeout_ms=self._info.idle_timeout_ms,
            max_session_ms=self._info.max_session_ms,
            model=self._info.model,
            languages=list(self._info.languages),
            encoding=audio.encoding,
            sample_rate=audio.sample_rate,
            channels=audio.channels,
            step_ms=self._info.step_ms,
            endpointing=Endpointing.of(self._endpointing),
            format=self._format,
            limits=self._info.limits,
        ).model_dump_json()

    def event(self, event: events.Event) -> Result:
        """A result of the recogniser as a message."""
        formatted = None
        if self._formatter and isinstance(event, events.Final):
            formatted = self._formatter.format(event).text
        message = message_of(event, self._next_seq(), self._end_reason, formatted)
        return _result(
            message,
            replaceable=isinstance(event, events.Partial),
            supersedes=isinstance(event, events.Partial | events.Final),
        )

    def acknowledgement(self, *, everything: bool = False) -> str | None:
        """A message saying what was received, once for every second of audio; None before the second is full, unless
        ``everything`` must be said."""
        if self._samples - self._acknowledged < TARGET_RATE and not everything:
            return None
        self._acknowledged = self._samples
        return messages.Ack(
            audio_bytes=self._audio_bytes,
            audio_ms=self._samples * 1000 // TARGET_RATE,
            controls=self._controls,
        ).model_dump_json()

    def wind_up(self, reason: EndReason) -> list[Action]:
        """End the session from our side: the actions of ``end``, and ``done`` tells the reason."""
        if self._over:
            return []
        self._end_reason = reason
        return self._end()

    @property
    def sample_rate(self) -> int:
        """Of the audio that is sent, as far as is known yet."""
        return self._decoder.sample_rate

    def receive_bytes(self, data: bytes) -> list[Action]:
        """A binary message, or any slice of one."""
        if self._over or not data:
            return []
        self._audio_bytes += len(data)
        if _is_control_text(data):
            return self._bad_message(
                f"control messages must be text frames, this one came as a binary frame: {_shown_bytes(data)}"
            )
        try:
            actions = self._audio(self._decoder.feed(data))
        except AudioError as error:
            self._over = True
            return [refusal(ErrorCode(error.problem.value), str(error), CloseCode.UNSUPPORTED_DATA)]
        actions += [Warn(suspicion_warning(suspicion)) for suspicion in self._decoder.suspicions]
        self._decoder.suspicions.clear()
        if self._decoder.surplus and not self._surplus_told:
            self._surplus_told = True
            message = (
                "the WAV header states the length of its audio; what follows is no WAV chunk and is dropped. "
                "Write size 0 or 0xFFFFFFFF into the header of a live stream"
            )
            actions.append(self._error(ErrorCode.AUDIO_AFTER_WAV, message))
        return actions

    def receive_text(self, text: str) -> list[Action]:
        """A text message."""
        if self._over:
            return []
        # The limit is on bytes, and a character has at most four: most texts need no encoding to be judged.
        limit = self._info.limits.max_control_bytes
        if len(text) > limit or (4 * len(text) > limit and len(text.encode()) > limit):
            return self._bad_message(f"text message of over {limit} bytes; audio goes into binary messages")
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return self._bad_message(f"{shown(text)} is not JSON; send {ALLOWED_MESSAGES}")
        if not isinstance(fields, dict):
            return self._bad_message(f"{shown(text)} is not a JSON object; send {ALLOWED_MESSAGES}")
        if "type" not in fields and "event" in fields:
            self._over = True
            message = (
                "this looks like the JSON envelope of a telephony platform. Unwrap it: decode the base64 "
                "payload of each media event and send the bytes as binary messages, usually with "
                "?encoding=mulaw&sample_rate=8000"
            )
            return [refusal(ErrorCode.TELEPHONY_ENVELOPE, message, CloseCode.POLICY)]
        try:
            message_in = messages.CLIENT_MESSAGE.validate_python(fields)
        except ValidationError as error:
            if fields.get("type") == "configure":
                return self._bad_message(explained(error))
            return self._bad_message(f"{shown(text)} is not a known message; send {ALLOWED_MESSAGES}")
        if isinstance(message_in, messages.KeepAlive):
            return []
        self._controls += 1
        match message_in:
            case messages.Finalize():
                return [*self._audio(self._decoder.flush()), Finalize()]
            case messages.Cancel():
                # What the resampler holds back is dropped with the rest, but it counts as audio received.
                return [*self._audio(self._decoder.flush()), Cancel()]
            case messages.Configure():
                return self._configure(message_in)
        return self._end()

    @property
    def _format(self) -> list[str]:
        return list(self._formatter.names) if self._formatter else []

    def _configure(self, change: messages.Configure) -> list[Action]:
        if change.format is not None:
            try:
                self._formatter = make_final_formatter(split_names(change.format), self._info.languages[0])
            except UnknownFormatterError as error:
                return self._bad_message(f"format={shown(change.format)} is not possible: {error}")
        self._endpointing = change.applied_to(self._endpointing)
        endpointing = Endpointing.of(self._endpointing)
        answer = messages.Configured(seq=self._next_seq(), endpointing=endpointing, format=self._format)
        return [Configure(self._endpointing), _result(answer)]

    def _bad_message(self, message: str) -> list[Action]:
        """Answer a message that is not understood; a client that sends nothing else is closed in the end."""
        self._bad_messages += 1
        limit = self._info.limits.max_bad_messages
        if self._bad_messages > limit:
            self._over = True
            text = f"more than {limit} messages were not understood, the last: {message}"
            return [refusal(ErrorCode.TOO_MANY_ERRORS, text, CloseCode.POLICY)]
        return [self._error(ErrorCode.BAD_MESSAGE, message)]

    def _end(self) -> list[Action]:
        self._over = True
        return [*self._audio(self._decoder.end()), End()]

    def _audio(self, samples: Float32) -> list[Action]:
        self._samples += len(samples)
        return [Audio(samples)] if len(samples) else []

    def _error(self, code: ErrorCode, message: str) -> Result:
        """An error after which the session goes on."""
        return _result(messages.Error(seq=self._next_seq(), code=code, message=message, fatal=False))

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq


def _result(
    message: messages.NumberedMessage | messages.Error, *, replaceable: bool = False, supersedes: bool = False
) -> Result:
    assert message.seq is not None
    return Result(message.seq, message.model_dump_json(), replaceable, supersedes)


def _is_control_text(data: bytes) -> bool:
    """True for a JSON object with a ``type`` (or ``event``): no audio looks like that by chance."""
    if len(data) > _LARGEST_CONTROL_IN_BINARY or data[:1] != b"{":
        return False
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and not fields.keys().isdisjoint(("type", "event"))


def _shown_bytes(data: bytes) -> str:
    return shown(data.decode("utf-8", "replace"))
