"""All live sessions, and those that are over but may still be asked for: opened, found again, timed, ended."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from parakeet_live.access.usage import Lease
from parakeet_live.dialects.messages import EndReason, WarningCode
from parakeet_live.dialects.native import NativeSession, ServerInfo, warning
from parakeet_live.dialects.query import StreamRequest
from parakeet_live.engine.stream import Stream
from parakeet_live.settings import Settings
from parakeet_live.web.inbox import Departure
from parakeet_live.web.live_session import LiveSession
from parakeet_live.web.observer import Observer
from parakeet_live.web.outbox import Closing, Outbox

log = logging.getLogger(__name__)

MAX_FINISHED = 256
"""Sessions that are over and kept in case their last messages got lost; beyond it the oldest are forgotten."""
TOKEN_BYTES = 24
RETURN_SECONDS = 3.0
"""A server that stops waits so long for a client that has just lost its connection."""


class SessionRegistry:
    """Owns every :class:`LiveSession` from its beginning until nobody can come back for it."""

    def __init__(self, info: ServerInfo, observer: Observer, settings: Settings) -> None:
        self._info = info
        self._observer = observer
        self._settings = settings
        self._sessions: dict[str, LiveSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        """A connection has ended, or a session was forgotten."""

    @property
    def detached(self) -> int:
        """Sessions that hold a stream and wait for their client to come back."""
        return sum(not (session.attached or session.over) for session in self._sessions.values())

    def open(
        self, request: StreamRequest, stream: Stream, lease: Lease, on_free: Callable[[], None]
    ) -> LiveSession:
        """A new session on this stream, which owns the lease; ``on_free`` is called when the stream's slot is free."""
        session_id = secrets.token_hex(8)
        token = None
        if self._settings.resume_window_s:
            token = f"{session_id}.{secrets.token_urlsafe(TOKEN_BYTES)}"
        native = NativeSession(session_id, request, self._info, token)
        session = LiveSession(
            session_id, token, native, stream, lease, self._observer.session(session_id), self._settings
        )
        self._sessions[session_id] = session
        task = asyncio.create_task(_hold(session, on_free))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        log.info("session %s: opened, %s", session_id, request.audio.resolve())
        return session

    def find(self, token: str, holder: str) -> LiveSession | None:
        """The session that the holder of a key (empty: of none) may resume with this token."""
        session = self._sessions.get(token.partition(".")[0])
        return session if session and session.admits(token, holder) else None

    def connection_ended(self, session: LiveSession, outbox: Outbox, how: Closing | Departure | None) -> None:
        """A connection is over: by our closing, by the client, or (None) because the client took nothing more."""
        if not session.detach(outbox):
            log.info("session %s: another connection took over", session.id)
            return
        window = self._settings.resume_window_s if session.resumable else 0.0
        if isinstance(how, Closing):
            session.delivered = True
            log.info("session %s: closed with %d%s", session.id, how.code, how.reason and f" {how.reason}")
        elif how is None:
            log.info("session %s: the client did not take the last messages in time", session.id)
        elif how.lost and window:
            log.info(
                "session %s: connection lost (%d %s); kept for %g s", session.id, how.code, how.reason, window
            )
        else:
            window = 0.0
            log.info("session %s: the client has left, %d %s", session.id, how.code, how.reason)
        if not window:
            self._forget(session)
        self._changed.set()

    def check(self, now: float) -> None:
        """Look at the clock (monotonic, seconds) for all sessions."""
        finished = 0
        for session in reversed(list(self._sessions.values())):
            session.check(now)
            if session.detached_at is None:
                continue
            finished += session.over
            if now - session.detached_at >= self._settings.resume_window_s or finished > MAX_FINISHED:
                if not session.delivered:
                    log.info("session %s: nobody came back", session.id)
                self._forget(session)

    async def drain(self) -> None:
        """Warn and wind up every session; returns when each has been delivered to its client."""
        text = warning(
            WarningCode.DRAINING, "the server is stopping: it sends what it has recognised, and `done`"
        )
        for session in self._sessions.values():
            session.warn(text)
            session.wind_up(EndReason.DRAINING)
        while any(map(_awaited, self._sessions.values())):
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 0.1)

    async def close(self) -> None:
        """End every session at once; returns when all streams are given back."""
        for session in list(self._sessions.values()):
            self._forget(session)
        await asyncio.gather(*self._tasks)

    def _forget(self, session: LiveSession) -> None:
        session.close()
        self._sessions.pop(session.id, None)
        self._changed.set()


def _awaited(session: LiveSession) -> bool:
    """Whether the server stops later for this session: its client is there, or may be back in a moment."""
    if session.detached_at is None:
        return True
    return not session.delivered and time.monotonic() - session.detached_at < RETURN_SECONDS


async def _hold(session: LiveSession, on_free: Callable[[], None]) -> None:
    try:
        await session.run()
    finally:
        on_free()
