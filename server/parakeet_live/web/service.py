"""What stands behind ``/v1/stream``: the pool of streams with its queue, and the sessions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from parakeet_live.access.usage import Lease
from parakeet_live.dialects.native import ServerInfo
from parakeet_live.dialects.query import StreamRequest
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.admission import Admission, Ticket
from parakeet_live.web.live_session import LiveSession
from parakeet_live.web.liveness import LAG_WARNING_SECONDS
from parakeet_live.web.observer import Observer
from parakeet_live.web.sessions import SessionRegistry

log = logging.getLogger(__name__)

CHECK_SECONDS = 0.2
"""So often is looked for what is due by the clock."""
HOLD_FROM_LAG = LAG_WARNING_SECONDS
HOLD_UNTIL_LAG = 0.5 * LAG_WARNING_SECONDS
"""Lateness of the latest stream, in seconds, from which nobody is admitted, and below which somebody is again."""


class StreamService:
    """Use as ``async with``. Owned by the event loop."""

    def __init__(
        self, recognizer: Recognizer, observer: Observer, settings: Settings, max_streams: int
    ) -> None:
        """At most ``max_streams`` streams are open at the same time."""
        self.settings = settings
        self.admission = Admission(max_streams, settings.max_waiting)
        self.draining = False
        info = ServerInfo(
            recognizer.bundle_name,
            recognizer.languages,
            recognizer.step_ms,
            settings.limits,
            resume_window_ms=round(1000 * settings.resume_window_s),
            idle_timeout_ms=round(1000 * settings.idle_timeout_s),
            max_session_ms=round(1000 * settings.max_session_s),
        )
        self.sessions = SessionRegistry(info, observer, settings)
        self._recognizer = recognizer
        self._clock: asyncio.Task[None] | None = None

    @property
    def language(self) -> str:
        """Tag of the language that the model is for, or mostly for."""
        return self._recognizer.languages[0]

    def arrive(self, on_change: Callable[[], None]) -> Ticket | None:
        """A client wants a stream: its ticket, or None if it must go away."""
        return None if self.draining else self.admission.arrive(on_change)

    def begin(self, request: StreamRequest, ticket: Ticket, lease: Lease) -> LiveSession:
        """A session for an admitted client; from here on it owns ticket and lease. Raises CapacityError."""
        stream = self._recognizer.open(request.endpointing)
        return self.sessions.open(request, stream, lease, lambda: self.give_back(ticket))

    def give_back(self, ticket: Ticket) -> None:
        """A client is through, or does not wait any longer."""
        self.admission.leave(ticket, time.monotonic())

    async def drain(self) -> None:
        """Admit nobody, and end every session; returns when each has got its last messages."""
        self.draining = True
        self.admission.close()
        await self.sessions.drain()

    async def __aenter__(self) -> Self:
        self._clock = asyncio.create_task(self._watch_the_clock())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._clock is not None
        self._clock.cancel()
        await asyncio.gather(self._clock, return_exceptions=True)
        self.admission.close()
        await self.sessions.close()

    async def _watch_the_clock(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                self.sessions.check(time.monotonic())
                self._watch_lag()
            except Exception:
                log.exception("a fault while looking at the clock")

    def _watch_lag(self) -> None:
        lag = self._recognizer.largest_lag
        held = lag >= (HOLD_UNTIL_LAG if self.admission.held else HOLD_FROM_LAG)
        if held != self.admission.held:
            if held:
                log.warning("recognition is %.1f s late: no new streams until it has caught up", lag)
            self.admission.hold(held)
