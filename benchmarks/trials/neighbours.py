"""One live stream, alone and beside silent clients: what they do to its latency, and to the event loop."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.trials.harness import RATE, spread, statistics, trial_server
from parakeet_live.bench.load import open_streams, play
from parakeet_live.bench.probe import Probe
from parakeet_live.bench.results import read_log
from parakeet_live.bench.tracks import encode, read_recordings, speak
from parakeet_live.demo import RECORDING
from parakeet_live.engine.stats import Histogram

SILENCE = bytes(3200)


async def _latencies(probe: Probe, talkers: int, seconds: int, seed: int) -> list[float]:
    """Milliseconds from audio to each partial and final, in real time."""
    recordings = read_recordings([RECORDING])
    tracks = [
        encode(speak(recordings, seconds * RATE, np.random.default_rng([seed, number])), 100)
        for number in range(talkers)
    ]
    streams = await open_streams(probe, tracks, talkers)
    begin = time.monotonic() + 0.1
    await play(streams, [begin + 0.16 * number / talkers for number in range(talkers)])
    await asyncio.gather(*(stream.finish() for stream in streams))
    results = [read_log(stream.log) for stream in streams]
    assert not any(result.problem for result in results), results
    return [latency.ms for result in results for latency in (*result.partials, *result.finals)]


async def _send_silence(client: ClientConnection) -> None:
    while True:
        await client.send(SILENCE)
        await asyncio.sleep(0.1)


async def _silent_neighbours(streams: int, seconds: int, rounds: int) -> dict[str, Any]:
    phases: dict[str, list[float]] = {"alone": [], "beside idle": [], "beside silence": []}
    with trial_server(streams) as probe:
        for number in range(rounds):
            for name, latencies in phases.items():
                async with AsyncExitStack() as stack:
                    others = 0 if name == "alone" else streams - 1
                    clients = [
                        await stack.enter_async_context(connect(probe.url, compression=None, max_queue=None))
                        for _ in range(others)
                    ]
                    sending = [
                        asyncio.create_task(_send_silence(client))
                        for client in clients
                        if name == "beside silence"
                    ]
                    latencies += await _latencies(probe, 1, seconds, number)
                    for task in sending:
                        task.cancel()
    p95 = {name: float(np.quantile(latencies, 0.95)) for name, latencies in phases.items()}
    return {
        "streams": streams,
        "latency_ms": {name: spread(latencies) for name, latencies in phases.items()},
        "p95_against_alone": {name: round(value / p95["alone"], 3) for name, value in p95.items()},
    }


async def _full_house(streams: int, seconds: int) -> dict[str, Any]:
    """The same server with no stream and with all: what the machine's other work does is in both."""
    figures: dict[str, Any] = {"streams": streams}
    with trial_server(streams) as probe:
        for name, talkers in {"without streams": 0, "full": streams}.items():
            before = await statistics(probe)
            answers: list[float] = []
            asking = asyncio.create_task(_ask(probe, answers))
            latencies: list[float] = []
            if talkers:
                latencies = await _latencies(probe, talkers, seconds, 0)
            else:
                await asyncio.sleep(seconds)
            asking.cancel()
            after = await statistics(probe)
            figures[name] = {
                "loop_delay_ms": _ticks(before, after),
                "seconds_to_answer_http": spread(answers),
                "latency_ms": spread(latencies),
            }
    return figures


async def _ask(probe: Probe, answers: list[float]) -> None:
    while True:
        asked = time.monotonic()
        await statistics(probe)
        answers.append(time.monotonic() - asked)
        await asyncio.sleep(0.2)


def _ticks(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """How late the event loop was in between."""
    first, last = (Histogram.from_data(stats["engine"]["loop_delay_ms"]) for stats in (before, after))
    ticks = last.since(first)
    return {
        "p50": round(ticks.quantile(0.5), 1),
        "p99": round(ticks.quantile(0.99), 1),
        "max": round(ticks.largest, 1),
    }


def silent_neighbours(streams: int, seconds: int, rounds: int) -> dict[str, Any]:
    return asyncio.run(_silent_neighbours(streams, seconds, rounds))


def full_house(streams: int, seconds: int) -> dict[str, Any]:
    return asyncio.run(_full_house(streams, seconds))
