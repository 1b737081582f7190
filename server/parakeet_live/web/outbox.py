"""What one connection sends next: notices first, then the results of its session, and at last the closing."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from parakeet_live.web.results import ResultLog

MAX_NOTICES = 16
"""Unsent notices; beyond it the oldest is dropped."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a connection: what the server's close frame says, and a message to send before it."""

    code: int
    reason: str = ""
    farewell: str | None = None


class Outbox:
    """One reader, bounded. After :meth:`close` nothing more can be put in."""

    def __init__(self, results: ResultLog) -> None:
        self._results = results
        self._notices: deque[str] = deque(maxlen=MAX_NOTICES)
        self._acknowledgement: str | None = None
        self._closing: Closing | None = None
        self._farewell: str | None = None
        self._abandoned = False
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()

    @property
    def closed(self) -> bool:
        """True once the end of the connection is decided."""
        return self._closing is not None

    async def wait_closed(self) -> None:
        """Return once the end of the connection is decided."""
        await self._closed.wait()

    def notice(self, text: str) -> None:
        """Queue a message that belongs to this connection alone."""
        if not self.closed:
            self._notices.append(text)
            self._changed.set()

    def acknowledge(self, text: str) -> None:
        """Queue an acknowledgement; it takes the place of an unsent one."""
        if not self.closed:
            self._acknowledgement = text
            self._changed.set()

    def wake(self) -> None:
        """There are new results."""
        self._changed.set()

    def close(self, closing: Closing, *, abandon: bool = False) -> None:
        """What is queued is still sent, unless ``abandon``; then the connection closes. Only the first call counts."""
        if self._closing is None:
            self._closing = closing
            self._farewell = closing.farewell
            self._abandoned = abandon
            self._changed.set()
            self._closed.set()

    async def get(self) -> str | Closing:
        """The next message, or the closing after the last."""
        while True:
            if self._abandoned and self._closing:
                return self._closing
            if self._notices:
                return self._notices.popleft()
            if self._acknowledgement is not None:
                text, self._acknowledgement = self._acknowledgement, None
                return text
            if (result := self._results.take()) is not None:
                return result.text
            if self._closing is not None:
                farewell, self._farewell = self._farewell, None
                return farewell if farewell is not None else self._closing
            self._changed.clear()
            await self._changed.wait()
