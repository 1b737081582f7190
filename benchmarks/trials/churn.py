"""Thousands of short sessions with clean and rude ends: memory, files and threads must come back."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from itertools import pairwise
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.trials.harness import END, handles, resident, speech, trial_server, until_idle
from parakeet_live.bench.probe import Probe

WAYS = ("end", "close", "reset", "half a message", "error")


async def _visit(probe: Probe, audio: bytes, way: str) -> None:
    async with connect(probe.url, compression=None, max_queue=None, open_timeout=60) as client:
        try:
            await client.recv()
            await client.send(audio)
            match way:
                case "end" | "error":
                    await client.send(END if way == "end" else '{"event":"start"}')
                    async for _ in client:
                        pass
                case "close":
                    await client.close()
                case "half a message":
                    client.transport.write(b"\x82\xfe\x10\x00" + bytes(100))
                    client.transport.abort()
                case "reset":
                    raw = client.transport.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.transport.abort()
        except WebSocketException:
            pass  # the end that this way of leaving makes


async def _run(sessions: int, at_once: int) -> dict[str, Any]:
    rng = random.Random(0)
    audio = speech(3)
    memory: dict[int, float] = {}
    open_after: dict[int, dict[str, int]] = {}
    # A lost client's session is kept for the window, so it must be short, or the pool would fill with them.
    with trial_server(4 * at_once, "--resume-window-s", "1") as probe:
        visits = [WAYS[number % len(WAYS)] for number in range(sessions)]
        rng.shuffle(visits)
        marks = sorted({0, sessions // 10, sessions // 2, sessions})
        for begin, end in pairwise(marks):
            left = iter(visits[begin:end])

            async def visitor(left: Any = left) -> None:
                for way in left:
                    await _visit(probe, audio[: rng.randrange(3200, len(audio), 2)], way)

            await asyncio.gather(*(visitor() for _ in range(at_once)))
            await until_idle(probe)
            await asyncio.sleep(2)
            memory[end] = round(resident(probe), 1)
            open_after[end] = handles(probe)
    first, last = memory[marks[1]], memory[sessions]
    return {
        "sessions": sessions,
        "at_once": at_once,
        "memory_mb_after_sessions": memory,
        "growth_since_first_mark": round(last / first - 1, 4),
        "files_and_threads_after_sessions": open_after,
    }


def run(sessions: int, at_once: int) -> dict[str, Any]:
    return asyncio.run(_run(sessions, at_once))
