"""The WebSocket protocol below the application: what is gathered, in which order, and how much is held."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from parakeet_live.web.run import RECEIVE_BUFFER, listening_socket
from parakeet_live.web.upgrade import GATHER_SECONDS, SMALL_BYTES, StreamProtocol, UpgradeProtocol

Received = list[str | bytes | int]
"""Texts, binary messages, and at last the close code."""


class Listener:
    """An application that keeps what it receives, as long as ``open`` is set."""

    def __init__(self) -> None:
        self.received: Received = []
        self.open = asyncio.Event()
        self.open.set()
        self.over = asyncio.Event()

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while True:
            await self.open.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.received.append(message["code"])
                self.over.set()
                return
            text = message.get("text")
            self.received.append(text if text is not None else message["bytes"])


@asynccontextmanager
async def listening(app: Listener) -> AsyncIterator[tuple[str, uvicorn.Server]]:
    config = uvicorn.Config(
        app, http=UpgradeProtocol, ws=StreamProtocol, lifespan="off", log_config=None, ws_max_size=2**24
    )
    server = uvicorn.Server(config)
    with listening_socket("127.0.0.1", 0) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}/", server
        finally:
            server.should_exit = True
            await task


def frame(data: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def joined(received: Received) -> Received:
    """Neighbouring binary messages as one: what an application that takes bytes as a stream sees."""
    result: Received = []
    for item in received:
        if isinstance(item, bytes) and result and isinstance(result[-1], bytes):
            item = result.pop() + item  # type: ignore[operator]
        result.append(item)
    return result


async def test_messages_of_one_segment_keep_their_order() -> None:
    large = bytes([7]) * (SMALL_BYTES + 1)
    segment = b"".join(
        [
            frame(b"a1"),
            frame(b"a2"),
            frame(b""),
            frame(b"text", Opcode.TEXT),
            frame(b"b1"),
            frame(large),
            frame(b"b2"),
            frame(b"b3"),
            frame(b'{"type":"end"}'),
            frame(b"c1"),
            frame(b"frag", fin=False),
            frame(b"", Opcode.PING),
            frame(b"mented", Opcode.CONT),
            frame(b"d1"),
            frame(b"cut", Opcode.TEXT, fin=False),
        ]
    )
    rest = frame(b" in two", Opcode.CONT) + frame(b"e1") + frame(b"\x03\xe8", Opcode.CLOSE)
    app = Listener()
    async with listening(app) as (url, _), connect(url, compression=None) as client:
        client.transport.write(segment)
        await asyncio.sleep(0.2)
        client.transport.write(rest)
        await app.over.wait()
    assert app.received == [
        *(b"a1a2", "text", b"b1", large, b"b2b3", b'{"type":"end"}', b"c1", b"fragmented", b"d1"),
        *("cut in two", b"e1", 1000),
    ]


async def drip(client: ClientConnection, messages: list[bytes]) -> None:
    """Each message in a segment of its own, hundreds a second."""
    for message in messages:
        client.transport.write(message)
        await asyncio.sleep(0.001)


async def test_hundreds_of_tiny_messages_a_second_are_gathered() -> None:
    audio = [number.to_bytes(2, "big") for number in range(600)]
    messages = [frame(piece) for piece in audio]
    messages.insert(300, frame(b"in between", Opcode.TEXT))
    app = Listener()
    async with listening(app) as (url, _), connect(url, compression=None) as client:
        await drip(client, messages)
        await asyncio.sleep(5 * GATHER_SECONDS)
        pieces = len(app.received)
        client.transport.write(frame(b"at once"))
        await client.close()
        await app.over.wait()
    assert joined(app.received) == [
        b"".join(audio[:300]),
        "in between",
        b"".join(audio[300:]) + b"at once",
        1000,
    ]
    assert pieces < len(audio) / 2


async def test_tiny_messages_of_a_client_that_vanishes_arrive_before_its_end() -> None:
    audio = [number.to_bytes(2, "big") for number in range(100)]
    app = Listener()
    async with listening(app) as (url, _), connect(url, compression=None) as client:
        await drip(client, [frame(piece) for piece in audio])
        await asyncio.sleep(5 * GATHER_SECONDS)
        client.transport.abort()
        await app.over.wait()
    assert joined(app.received) == [b"".join(audio), 1006]


async def test_what_an_application_does_not_take_is_bounded() -> None:
    count, piece = 50_000, bytes(range(80))
    app = Listener()
    app.open.clear()
    async with listening(app) as (url, server), connect(url, compression=None) as client:
        client.transport.write(frame(piece) * count)
        await asyncio.sleep(0.5)
        (protocol,) = server.server_state.connections
        assert isinstance(protocol, StreamProtocol)
        assert protocol.read_paused
        held = sum(len(message.get("bytes", b"")) for message in protocol.queue._queue)  # type: ignore[attr-defined]
        assert 0 < held <= 256 * 1024, "one reading of the socket"
        raw = protocol.transport.get_extra_info("socket")
        # Linux doubles the number, for its own bookkeeping.
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 2 * RECEIVE_BUFFER
        app.open.set()
        await client.close()
        await app.over.wait()
    assert joined(app.received) == [piece * count, 1000]
