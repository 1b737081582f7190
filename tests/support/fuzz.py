"""Senseless and hostile frames for a running server, from a seed: ``cd tests && python -m support.fuzz --help``.

The frames are made by hand, because a WebSocket library would refuse to send most of them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
QUERIES = (
    "",
    "encoding=mulaw&sample_rate=8000",
    "channels=2",
    "endpointing=dictation",
    "encoding=pcm_f32le",
    "vad=false",
)
WORDS = (
    "type", "finalize", "end", "cancel", "keepalive", "configure", "endpointing", "eou_silence_ms", "event", "media",
    None, True, -1, 0, 2**63, 1e308, "", "\u0000", "\ud800", "ÿ", [], {}, "x" * 300,
)  # fmt: skip
SECONDS_WITHOUT_ANSWER = 30


def frame(
    opcode: int, payload: bytes, *, final: bool = True, masked: bool = True, reserved: int = 0
) -> bytes:
    """One WebSocket frame, valid (RFC 6455, section 5.2) unless the arguments are not."""
    head = bytearray([final << 7 | reserved << 4 | opcode])
    size = len(payload)
    if size < 126:
        head.append(masked << 7 | size)
    elif size < 2**16:
        head += struct.pack("!BH", masked << 7 | 126, size)
    else:
        head += struct.pack("!BQ", masked << 7 | 127, size)
    if masked:
        key = os.urandom(4)
        head += key
        # Whole words at once: a million frames must not spend their time here.
        pad = (key * (size // 4 + 1))[:size]
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
    return bytes(head) + payload


def frames(chance: random.Random) -> Iterator[bytes]:
    """Without end: mostly well-formed frames with senseless content, now and then a broken one."""
    while True:
        kind = chance.random()
        if kind < 0.45:
            yield frame(BINARY, chance.randbytes(_size(chance)))
        elif kind < 0.75:
            yield frame(TEXT, _text(chance))
        elif kind < 0.85:
            whole = chance.randbytes(_size(chance))
            cut = chance.randint(0, len(whole))
            yield frame(BINARY, whole[:cut], final=False)
            yield frame(CONTINUATION, whole[cut:])
        elif kind < 0.95:
            yield frame(chance.choice((PING, PONG)), chance.randbytes(chance.randint(0, 125)))
        elif kind < 0.98:
            yield _broken(chance)
        else:
            yield frame(
                CLOSE, struct.pack("!H", chance.choice((1000, 1001, 1005, 1006, 1015, 3000, 4999, 0, 65535)))
            )


def _size(chance: random.Random) -> int:
    return chance.choice(
        (0, 1, 2, 3, 44, chance.randint(0, 400), chance.randint(0, 4000), chance.randint(0, 80_000))
    )


def _text(chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return chance.randbytes(chance.randint(0, 200))
    fields = {str(chance.choice(WORDS)): chance.choice(WORDS) for _ in range(chance.randint(0, 4))}
    if chance.random() < 0.7:
        fields["type"] = chance.choice(WORDS)
    text = json.dumps(fields).encode()
    return text[: chance.randint(0, len(text))] if chance.random() < 0.2 else text


def _broken(chance: random.Random) -> bytes:
    payload = chance.randbytes(chance.randint(0, 200))
    return chance.choice(
        (
            frame(BINARY, payload, masked=False),
            frame(BINARY, payload, reserved=chance.randint(1, 7)),
            frame(chance.choice((3, 4, 7, 11, 15)), payload),
            frame(CONTINUATION, payload),
            frame(PING, payload, final=False),
            b"\x82\xff" + struct.pack("!Q", 2**63 - 1) + payload,
            payload,
        )
    )


class Fuzzer:
    """Counts what it has sent and how connections ended."""

    def __init__(self, url: str, seed: int) -> None:
        self._parts = urlsplit(url)
        self._chance = random.Random(seed)
        self.sent = 0
        self.endings: Counter[str] = Counter()

    async def run(self, wanted: int, connections: int) -> None:
        """Send so many frames over so many connections at a time."""
        await asyncio.gather(*(self._worker(wanted) for _ in range(connections)))

    async def _worker(self, wanted: int) -> None:
        chance = random.Random(self._chance.random())
        while self.sent < wanted:
            self.endings[
                await self._connection(chance, min(wanted - self.sent, chance.randint(1, 2000)))
            ] += 1

    async def _connection(self, chance: random.Random, most: int) -> str:
        host, port = self._parts.hostname, self._parts.port
        reader, writer = await asyncio.open_connection(host, port)
        try:
            query = chance.choice(QUERIES)
            key = base64.b64encode(chance.randbytes(16)).decode()
            writer.write(
                f"GET {self._parts.path}?{query} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            drain = asyncio.create_task(_read_away(reader))
            try:
                for data in frames(chance):
                    await asyncio.sleep(0)
                    if most <= 0 or drain.done() or writer.transport.is_closing():
                        break
                    writer.write(data)
                    self.sent += 1
                    most -= 1
                    if writer.transport.get_write_buffer_size() > 2**20:
                        async with asyncio.timeout(SECONDS_WITHOUT_ANSWER):
                            await writer.drain()
                if drain.done() or writer.transport.is_closing():
                    return "closed by the server"
                if chance.random() < 0.3:
                    writer.write(frame(BINARY, bytes(1000))[: chance.randint(1, 900)])  # dies within a frame
                return "left"
            finally:
                drain.cancel()
        except (ConnectionError, RuntimeError):
            return "closed by the server"
        except TimeoutError:
            return "not read by the server"
        finally:
            writer.transport.abort()


async def _read_away(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(2**16):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description="Send senseless frames to a server on this machine.")
    parser.add_argument("url", help="ws://127.0.0.1:PORT/v1/stream")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--connections", type=int, default=8, help="at the same time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if urlsplit(arguments.url).hostname not in ("127.0.0.1", "localhost", "::1"):
        parser.error("only a server on this machine")
    fuzzer = Fuzzer(arguments.url, arguments.seed)
    asyncio.run(fuzzer.run(arguments.frames, arguments.connections))
    print(f"{fuzzer.sent} frames sent; connections: {dict(fuzzer.endings)}")


if __name__ == "__main__":
    main()
