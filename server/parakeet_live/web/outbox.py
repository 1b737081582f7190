"""Messages on their way to one client: bounded, whatever the client does."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

COALESCE_FROM = 64
"""Unsent messages from which older partials give way to newer ones. A partial holds the whole text of its
utterance, so nothing is lost; finals and errors are never dropped."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of the connection: what the server's close frame says."""

    code: int
    reason: str = ""


class Outbox:
    """A queue with one reader. After :meth:`close` nothing more can be put in."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[tuple[str, bool]] = deque()
        """Texts, each with whether a later one may replace it."""
        self._closing: Closing | None = None
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()

    @property
    def closed(self) -> bool:
        """True once the end of the connection is decided."""
        return self._closing is not None

    async def wait_closed(self) -> None:
        """Return once the end of the connection is decided."""
        await self._closed.wait()

    @property
    def overfull(self) -> bool:
        """True when the client must be given up: it does not read."""
        return len(self._queue) > self._limit

    def put(self, text: str, *, replaceable: bool = False) -> None:
        """Queue a message. A replaceable one (a partial) may be dropped in favour of the message after it."""
        if self._closing is not None:
            return
        if len(self._queue) >= COALESCE_FROM and self._queue[-1][1]:
            self._queue.pop()
        self._queue.append((text, replaceable))
        self._changed.set()

    def close(self, closing: Closing) -> None:
        """What is queued is still sent, then the connection closes. Only the first call counts."""
        if self._closing is None:
            self._closing = closing
            self._changed.set()
            self._closed.set()

    async def get(self) -> str | Closing:
        """The next message, or the closing after the last."""
        while not self._queue:
            if self._closing is not None:
                return self._closing
            self._changed.clear()
            await self._changed.wait()
        return self._queue.popleft()[0]
