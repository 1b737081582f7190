"""What the trials share: a server of their own, speech to send, sessions, and an eye on the server's memory."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from parakeet_client.wire import limit_send_buffer
from parakeet_live.bench.probe import Probe
from parakeet_live.bench.tracks import read_recordings, speak
from parakeet_live.demo import RECORDING
from parakeet_live.web.process import server_process

RATE = 16_000
BYTES_PER_SECOND = 2 * RATE
END = '{"type":"end"}'
Message = dict[str, Any]


@contextmanager
def trial_server(max_streams: int, *options: str, model: Path | None = None) -> Iterator[Probe]:
    """A server of our own; afterwards its log must hold neither an error nor a traceback."""
    with tempfile.TemporaryFile("w+") as log:
        with server_process(model, max_streams=max_streams, options=options, log=log) as server:
            yield Probe(server.url, server.pid)
        log.seek(0)
        text = log.read()
    if "Traceback" in text or " ERROR " in text:
        raise RuntimeError(text)


def speech(seconds: float, number: int = 0) -> bytes:
    """So much speech with pauses, 16 bit at 16 kHz; another one for every ``number``."""
    samples = speak(read_recordings([RECORDING]), int(seconds * RATE), np.random.default_rng(number))
    return samples.astype("<i2").tobytes()


def cut(audio: bytes, size: int) -> list[bytes]:
    """In messages of so many bytes."""
    return [audio[start : start + size] for start in range(0, len(audio), size)]


@dataclass(slots=True)
class Outcome:
    """What one client got."""

    first_answer: float = 0.0
    """Seconds from dialling to the first message, or to the refusal."""
    messages: list[Message] = field(default_factory=list)
    code: int | None = None
    """Close code, or the HTTP status of a refusal."""

    @property
    def kinds(self) -> list[str]:
        return [message["type"] for message in self.messages]

    @property
    def transcript(self) -> list[Any]:
        """Number and text of every final, and the times of its words. Confidences may differ in their last digit
        between steps of different sizes."""
        return [
            (m["utterance"], m["text"], [(w["text"], w["start_ms"], w["end_ms"]) for w in m["words"]])
            for m in self.messages
            if m["type"] == "final"
        ]


async def talk(
    url: str, sent: Iterable[bytes | str], *, pause: float = 0.0, admitted: asyncio.Event | None = None
) -> Outcome:
    """One session: everything is sent, with a pause after each message or as fast as the server takes it, and read
    until it closes. ``admitted`` is set at the first answer."""
    outcome = Outcome()
    dialled = time.monotonic()
    try:
        async with connect(
            url, compression=None, max_queue=None, open_timeout=60, ping_timeout=120
        ) as client:
            limit_send_buffer(client.transport)
            outcome.messages.append(json.loads(await client.recv()))
            outcome.first_answer = time.monotonic() - dialled
            if admitted:
                admitted.set()
            reader = asyncio.create_task(_read(client, outcome.messages))
            try:
                for message in sent:
                    await client.send(message)
                    await asyncio.sleep(pause)
            except ConnectionClosed:
                pass  # the reader has the reason
            await reader
            outcome.code = client.close_code
    except InvalidStatus as refused:
        outcome.first_answer = time.monotonic() - dialled
        outcome.messages.append(json.loads(refused.response.body or b"{}"))
        outcome.code = refused.response.status_code
    except (OSError, InvalidHandshake, ConnectionClosed) as error:
        outcome.messages.append({"type": "no connection", "message": str(error)})
    return outcome


async def _read(client: ClientConnection, messages: list[Message]) -> None:
    try:
        async for text in client:
            messages.append(json.loads(text))
    except ConnectionClosed:
        pass  # its code is in the outcome


@dataclass(slots=True)
class Memory:
    """Resident memory of a server over a while, in megabytes (10^6 bytes)."""

    before: float
    samples: list[float] = field(default_factory=list)

    @property
    def largest(self) -> float:
        return max(self.samples, default=self.before)


@asynccontextmanager
async def watching_memory(probe: Probe, every: float = 0.2) -> AsyncIterator[Memory]:
    """Samples the server's memory meanwhile."""
    memory = Memory(resident(probe))

    async def sample() -> None:
        while True:
            memory.samples.append(resident(probe))
            await asyncio.sleep(every)

    task = asyncio.create_task(sample())
    try:
        yield memory
    finally:
        task.cancel()


def resident(probe: Probe) -> float:
    """Megabytes."""
    found = probe.rss_mb()
    assert found is not None, "a server of our own"
    return found


def handles(probe: Probe) -> dict[str, int]:
    """Open files and threads of the server."""
    assert probe.pid is not None
    process = psutil.Process(probe.pid)
    return {"files": process.num_fds(), "threads": process.num_threads()}


async def statistics(probe: Probe) -> dict[str, Any]:
    """The server's own."""
    stats = (await asyncio.to_thread(probe.snapshot)).stats
    assert stats is not None
    return stats


async def until_idle(probe: Probe) -> None:
    """Return when no stream is open any more."""
    while (await statistics(probe))["streams"]["active"]:  # noqa: ASYNC110 - asked over HTTP
        await asyncio.sleep(0.1)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, p95 and largest, rounded to thousandths."""
    if not values:
        return {}
    p50, p95 = np.quantile(np.array(values), (0.5, 0.95))
    return {"p50": round(float(p50), 3), "p95": round(float(p95), 3), "max": round(max(values), 3)}
