"""Clients that send audio and never read: what they cost in memory, and what becomes of them and of one that reads."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from benchmarks.trials.harness import (
    BYTES_PER_SECOND,
    END,
    cut,
    speech,
    talk,
    trial_server,
    until_idle,
    watching_memory,
)
from parakeet_live.bench.probe import Probe

RECEIVE_BUFFER = 4096
"""Bytes that the kernel keeps for a client that does not read: as little as it takes."""


async def _be_deaf(probe: Probe, audio: list[bytes]) -> str:
    """Send everything and read nothing; returns how the sending ended."""
    parts = urlsplit(probe.url)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (parts.hostname, parts.port))
    client = await connect(probe.url, sock=raw, compression=None, ping_interval=None, close_timeout=1)
    try:
        await client.recv()
        client.transport.pause_reading()
        for message in audio:
            await asyncio.wait_for(client.send(message), 60)
        await client.send(END)
        return "everything sent"
    except (ConnectionClosed, TimeoutError) as ended:
        return type(ended).__name__
    finally:
        await asyncio.sleep(1)
        client.transport.abort()


async def _run(clients: int, minutes: float) -> dict[str, Any]:
    piece = cut(speech(60), 3200)
    audio = piece * int(minutes * 60 * BYTES_PER_SECOND / sum(map(len, piece)))
    healthy = [*cut(speech(20, 1), 3200), END]
    figures: dict[str, Any] = {"clients": clients, "minutes_of_audio_each": minutes}
    for kind in ("reading", "deaf"):
        # The defaults, but that nobody waits for a lost client to come back.
        with trial_server(clients + 1, "--resume-window-s", "0") as probe:
            alone = await talk(probe.url, healthy)
            async with watching_memory(probe) as memory:
                admitted = asyncio.Event()
                among_them = asyncio.create_task(talk(probe.url, healthy, pause=0.1, admitted=admitted))
                await admitted.wait()
                if kind == "deaf":
                    crowd = [asyncio.create_task(_be_deaf(probe, audio)) for _ in range(clients)]
                else:
                    crowd = [asyncio.create_task(_reading(probe, audio)) for _ in range(clients)]
                ends = Counter(await asyncio.gather(*crowd))
                await until_idle(probe)
                await asyncio.sleep(1)
        figures[kind] = {
            "memory_before_mb": round(memory.before, 1),
            "memory_largest_mb": round(memory.largest, 1),
            "memory_after_mb": round(memory.samples[-1], 1),
            "largest_growth_per_client_mb": round((memory.largest - memory.before) / clients, 2),
            "ends": dict(ends),
            "a_client_that_reads_gets_its_text": (await among_them).transcript == alone.transcript,
        }
    return figures


async def _reading(probe: Probe, audio: list[bytes]) -> str:
    return f"closed with {(await talk(probe.url, [*audio, END])).code}"


def run(clients: int, minutes: float) -> dict[str, Any]:
    return asyncio.run(_run(clients, minutes))
