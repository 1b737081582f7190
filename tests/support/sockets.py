"""Raw sessions with a server: what goes in, what comes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

END = '{"type":"end"}'
Message = dict[str, Any]


@dataclass
class Outcome:
    """Everything a server sent until it closed."""

    messages: list[Message]
    code: int | None
    reason: str | None

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.messages if message["type"] == kind]

    @property
    def texts(self) -> list[str]:
        """Texts of the finals."""
        return [message["text"] for message in self.of("final")]

    @property
    def results(self) -> list[Message]:
        """Partials and finals, without what depends on the clock or on other messages."""
        return [
            {name: value for name, value in message.items() if name not in ("seq", "timing")}
            for message in self.messages
            if message["type"] in ("partial", "final")
        ]

    @property
    def done(self) -> Message | None:
        """The last message of a session that came to its end, without its number."""
        last = self.messages[-1]
        return {**last, "seq": 0} if last["type"] == "done" else None


async def read_all(socket: ClientConnection) -> Outcome:
    """Read until the server closes."""
    messages: list[Message] = []
    try:
        async for text in socket:
            messages.append(json.loads(text))
    except ConnectionClosed:
        pass  # closed with another code than 1000, which the outcome says
    return Outcome(messages, socket.close_code, socket.close_reason)


async def session(url: str, sent: Iterable[bytes | str], origin: str | None = None) -> Outcome:
    """Send these messages on one connection while reading until the server closes.

    A browser is what has an ``origin``. A refusal before the handshake has the HTTP status as its code, and the header
    Retry-After as its reason.
    """
    try:
        async with connect(
            url, max_queue=None, compression=None, origin=Origin(origin) if origin else None
        ) as socket:
            reader = asyncio.create_task(read_all(socket))
            try:
                for message in sent:
                    await socket.send(message)
            except ConnectionClosed:
                pass  # refused while sending: the outcome says why
            return await reader
    except InvalidStatus as refused:
        response = refused.response
        return Outcome(
            [json.loads(response.body or b"")], response.status_code, response.headers["Retry-After"]
        )


def cut(data: bytes, *sizes: int) -> list[bytes]:
    """``data`` in pieces of these sizes, repeated."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


def http(url: str, path: str) -> httpx.Response:
    """GET of another path of the same server."""
    return httpx.get(str(httpx.URL(url).copy_with(scheme="http", path=path)), timeout=30.0)


def active_streams(url: str) -> int:
    count = http(url, "/healthz").json()["active_streams"]
    assert isinstance(count, int)
    return count


async def wait_until_idle(url: str) -> None:
    """Return when no stream is open. Fails the test by its own limit, not by speed: streams must end at all."""
    for _ in range(600):
        if await asyncio.to_thread(active_streams, url) == 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("streams are still open 30 s after their clients have gone")
