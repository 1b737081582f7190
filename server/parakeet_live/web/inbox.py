"""What one client has sent and nobody has processed yet. It is read ahead, so that its leaving is seen at once."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from fastapi import WebSocket

from parakeet_live.dialects.messages import CloseCode

AHEAD_BYTES = 256 * 1024
"""Beyond it, plus one message, the socket is not read: 8 s of 16-bit audio at 16 kHz."""

_LOST = frozenset(
    {
        CloseCode.ABNORMAL,
        CloseCode.INTERNAL_ERROR,  # no answer to a ping, on either side
        CloseCode.SERVICE_RESTART,
        CloseCode.TRY_AGAIN_LATER,
        CloseCode.BAD_GATEWAY,
    }
)
"""Codes with which a connection ends that nobody wanted to end; the last three are said by proxies."""


@dataclass(frozen=True, slots=True)
class Departure:
    """How the client's side of a connection ended."""

    code: int
    reason: str = ""

    @property
    def lost(self) -> bool:
        """True if the connection broke, False if the client has left on purpose or broke the protocol."""
        return self.code in _LOST


class Inbox:
    """Bounded: AHEAD_BYTES and one message."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._messages: deque[str | bytes] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def empty(self) -> bool:
        return not self._messages

    async def fill(self) -> Departure:
        """Read the socket until the client has gone."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return Departure(message["code"], message.get("reason") or "")
            text: str | None = message.get("text")
            item: str | bytes = text if text is not None else message["bytes"]
            self._messages.append(item)
            self._size += len(item)
            self._arrived.set()
            while self._size > AHEAD_BYTES:
                self._taken.clear()
                await self._taken.wait()

    async def take(self) -> str | bytes:
        """The next message."""
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        item = self._messages.popleft()
        self._size -= len(item)
        self._taken.set()
        return item
