"""One live session: protocol state, a stream of the recogniser, and its results. It outlives its connections.

A connection attaches with an outbox and feeds it what arrives; when the connection is lost the session goes on
recognising what it has, and waits for another one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence

from parakeet_live.access.usage import KeyLimitError, Lease
from parakeet_live.audio.formats import TARGET_RATE
from parakeet_live.audio.pace import PaceWatch
from parakeet_live.dialects.doubts import pace_warning
from parakeet_live.dialects.messages import CloseCode, EndReason, ErrorCode
from parakeet_live.dialects.native import (
    Action,
    Audio,
    Cancel,
    Configure,
    End,
    Finalize,
    NativeSession,
    Refuse,
    Result,
    Warn,
    refusal,
    warning,
)
from parakeet_live.engine.backend import EngineError
from parakeet_live.engine.stream import Stream
from parakeet_live.session.events import Final, Reason
from parakeet_live.settings import Settings
from parakeet_live.web.liveness import Liveness
from parakeet_live.web.observer import SessionObserver
from parakeet_live.web.outbox import Closing, Outbox
from parakeet_live.web.results import ResultLog

log = logging.getLogger(__name__)

SLICE_BYTES = 64 * 1024
"""A large message is decoded in slices of this size, with a turn for everyone else between two of them. Decoding
and resampling one takes at most 7 ms (measured: mu-law at 8 kHz, 8 s of audio), so it stays on the loop."""
MAX_UNANSWERED_FINALIZES = 16
"""Beyond it nothing more is taken until an answer has come: each costs up to 1.28 s of silence to recognise."""

CLOSINGS = {
    EndReason.END: Closing(CloseCode.NORMAL),
    EndReason.DRAINING: Closing(CloseCode.GOING_AWAY, EndReason.DRAINING.value),
    EndReason.IDLE_TIMEOUT: Closing(CloseCode.IDLE, EndReason.IDLE_TIMEOUT.value),
    EndReason.SESSION_LIMIT: Closing(CloseCode.SESSION_LIMIT, EndReason.SESSION_LIMIT.value),
}
"""How a connection closes after ``done``."""


class LiveSession:
    """Every method is called on the event loop. :meth:`run` holds the stream, and gives it back on every way out."""

    def __init__(
        self,
        session_id: str,
        token: str | None,
        native: NativeSession,
        stream: Stream,
        lease: Lease,
        observer: SessionObserver,
        settings: Settings,
    ) -> None:
        """``token`` lets another connection of the same key attach; None if none may."""
        self.id = session_id
        self._lease = lease
        self._observer = observer
        self.detached_at: float | None = None
        """Since when no connection is attached, on the monotonic clock."""
        self.delivered = False
        """Everything was sent and the connection closed by us."""
        self._secret = token
        self._native = native
        self._stream = stream
        self._settings = settings
        self._results = ResultLog()
        self._outbox: Outbox | None = None
        self._closing: Closing | None = None
        self._resumable = token is not None
        self._end_reason = EndReason.END
        self._liveness = Liveness(time.monotonic(), settings.idle_timeout_s, settings.max_session_s)
        self._pace: PaceWatch | None = None
        self._unanswered = 0
        """Finalizes whose final has not come."""
        self._answered = asyncio.Event()

    @property
    def over(self) -> bool:
        """True once everything was recognised, or the session has failed: only sending is left."""
        return self._closing is not None

    @property
    def attached(self) -> bool:
        return self._outbox is not None

    @property
    def resumable(self) -> bool:
        """True while another connection may attach."""
        return self._resumable

    def admits(self, token: str, holder: str) -> bool:
        """Whether ``token`` is the one that ``ready`` told, compared in constant time, and the key the same."""
        if not self._resumable or self._secret is None or holder != self._lease.holder:
            return False
        return secrets.compare_digest(token.encode(), self._secret.encode())

    # The stream

    async def run(self) -> None:
        """Recogniser to results, until the stream is over or closed; returns when its slot is free again."""
        try:
            async for event in self._stream:
                self._observer.event(event)
                self._put(self._native.event(event))
                if isinstance(event, Final) and event.reason is Reason.FINALIZE:
                    self._unanswered -= 1
                    self._answered.set()
                if self._results.unsent > self._settings.max_unsent_messages:
                    limit = self._settings.max_unsent_messages
                    message = f"over {limit} results are waiting to be read"
                    self.fail(refusal(ErrorCode.SLOW_READER, message, CloseCode.POLICY))
                    break
            else:
                self._finish(CLOSINGS[self._end_reason])
        except EngineError as error:
            log.error("session %s: engine failure: %s", self.id, error)
            message = "the recogniser failed; open a new connection and send the audio again"
            self.fail(refusal(ErrorCode.ENGINE_FAILED, message, CloseCode.INTERNAL_ERROR))
        except Exception:
            self.fail_internally()
        finally:
            self._stream.close()
            self._answered.set()
            self._lease.close()
            await self._stream.released()

    def close(self) -> None:
        """End the session without another word: nobody is there to hear it."""
        self._resumable = False
        self._finish(Closing(CloseCode.NORMAL))
        self._stream.close()

    def wind_up(self, reason: EndReason) -> None:
        """End the session from our side: what was received is recognised, then comes ``done`` with the reason."""
        actions = self._native.wind_up(reason)
        if actions and not self.over:
            self._end_reason = reason
            self._apply(actions)
            self._acknowledge(everything=True)

    def fail(self, refuse: Refuse) -> None:
        """End the session with a fatal error."""
        self._resumable = False
        self._finish(Closing(refuse.close_code, refuse.reason, refuse.text))
        self._stream.close()

    def fail_internally(self) -> None:
        """A fault of ours; called where it was caught."""
        log.exception("session %s failed", self.id)
        message = "the server failed on this session; open a new connection"
        self.fail(refusal(ErrorCode.INTERNAL_ERROR, message, CloseCode.INTERNAL_ERROR))

    def check(self, now: float) -> None:
        """Look at the clock: warn, or end the session."""
        if self.over:
            return
        if self.attached is False:
            self._liveness.heard(now)  # a lost connection is no silence
        for due in self._liveness.check(now, self._stream.lag(now)):
            if isinstance(due, EndReason):
                self.wind_up(due)
            else:
                self.warn(warning(due.code, due.message, **due.details))

    def warn(self, text: str) -> None:
        """Send a warning, if somebody is there."""
        if self._outbox:
            self._outbox.notice(text)

    # Connections

    def attach(self, seen: int | None) -> Outbox:
        """A connection takes the session over; results after number ``seen`` are sent on it, None if it is the first.

        Raises ResultsGoneError.
        """
        if seen is not None:
            self._results.rewind(seen)
            self._observer.resumed()
        if self._outbox:
            self._outbox.close(Closing(CloseCode.SUPERSEDED, "superseded"), abandon=True)
        self._outbox = Outbox(self._results)
        self.detached_at = None
        self._stream.client_returned()
        self._liveness.heard(time.monotonic())
        self._outbox.notice(self._native.ready(resumed=seen is not None))
        if self._closing:
            self._outbox.close(self._closing)
        return self._outbox

    def detach(self, outbox: Outbox) -> bool:
        """The connection has ended; False if another one has already taken over."""
        if self._outbox is not outbox:
            return False
        self._outbox = None
        self.detached_at = time.monotonic()
        self._stream.client_left()
        return True

    async def receive(self, outbox: Outbox, data: str | bytes) -> None:
        """Take one message of the connection with this outbox; returns when the next may come.

        It may be cancelled at any moment: what was taken until then is exactly what ``ready`` tells the next
        connection.
        """
        self._liveness.heard(time.monotonic())
        if isinstance(data, str):
            if self._outbox is outbox:
                self._apply(self._native.receive_text(data))
                await self._wait_for_room()
            return
        for start in range(0, len(data), SLICE_BYTES):
            if self._outbox is not outbox or self.over:
                return
            self._apply(self._native.receive_bytes(data[start : start + SLICE_BYTES]))
            self._acknowledge()
            await self._wait_for_room()
            if start + SLICE_BYTES < len(data):
                await asyncio.sleep(0)

    async def _wait_for_room(self) -> None:
        await self._stream.wait_below(self._settings.max_backlog_ms)
        while self._unanswered > MAX_UNANSWERED_FINALIZES and not self.over:
            self._answered.clear()
            await self._answered.wait()

    def _acknowledge(self, *, everything: bool = False) -> None:
        text = self._native.acknowledgement(everything=everything)
        if text and self._outbox:
            self._outbox.acknowledge(text)

    def _apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Warn(text):
                    self.warn(text)
                case Audio(samples):
                    self._stream.push(samples)
                    self._watch_pace(len(samples) / TARGET_RATE)
                    self._charge(len(samples))
                    self._observer.audio(len(samples))
                case Finalize():
                    self._unanswered += 1
                    self._stream.finalize()
                case Cancel():
                    self._stream.cancel()
                case Configure(endpointing):
                    self._stream.configure(endpointing)
                case End():
                    self._stream.end()
                case Result():
                    self._put(action)
                case Refuse():
                    self.fail(action)

    def _watch_pace(self, seconds: float) -> None:
        """Audio at the pace of another sample rate is told to the client, once."""
        if self._pace is None:
            self._pace = PaceWatch(self._native.sample_rate)
        probable = self._pace.received(seconds, time.monotonic())
        if probable is not None:
            self.warn(pace_warning(self._native.sample_rate, probable))

    def _charge(self, samples: int) -> None:
        """Count audio for the key, which may be used up by it."""
        try:
            self._lease.add_audio(1000 * samples / TARGET_RATE)
        except KeyLimitError as error:
            self.fail(refusal(ErrorCode.KEY_LIMIT, str(error), CloseCode.LIMIT_REACHED))

    def _put(self, result: Result) -> None:
        if self._results.put(result):
            self._observer.partial_dropped()
        if self._outbox:
            self._outbox.wake()

    def _finish(self, closing: Closing) -> None:
        if self._closing is None:
            self._closing = closing
            self._observer.closed(closing.code)
            if self._outbox:
                self._outbox.close(closing)
