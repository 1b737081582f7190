"""What tiny messages cost: the same audio in messages of 5 ms and of 100 ms, by the server's processor time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np

from parakeet_live.bench.load import LoadStream, open_streams
from parakeet_live.bench.probe import Probe
from parakeet_live.bench.results import read_log
from parakeet_live.bench.tracks import Track, encode, read_recordings, speak
from parakeet_live.demo import RECORDING
from parakeet_live.web.process import server_process

RATE = 16_000


async def _play(streams: list[LoadStream], frame_ms: int, speed: float) -> None:
    """All streams in step, each frame a write of its own, ``speed`` times as fast as speech."""
    due = time.monotonic()
    more = True
    while more:
        left = [stream.send_next() for stream in streams]
        more = any(left)
        due += frame_ms / 1000 / speed
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _run(probe: Probe, tracks: list[Track], speed: float) -> tuple[float, list[Any]]:
    """Processor seconds of the server, and the transcripts."""
    streams = await open_streams(probe, tracks, len(tracks))
    before = await asyncio.to_thread(probe.snapshot)
    await _play(streams, tracks[0].frame_ms, speed)
    await asyncio.gather(*(stream.finish() for stream in streams))
    after = await asyncio.to_thread(probe.snapshot)
    assert before.server_cpu is not None
    assert after.server_cpu is not None
    results = [read_log(stream.log) for stream in streams]
    problems = {result.problem for result in results if result.problem}
    if problems:
        raise RuntimeError(f"streams failed: {problems}")
    return after.server_cpu - before.server_cpu, [result.transcript for result in results]


def run(streams: int, seconds: int, frame_ms: list[int], speed: float, rounds: int) -> dict[str, Any]:
    """Every frame size in turn, ``rounds`` times on one server; the figure of each is its median."""
    recordings = read_recordings([RECORDING])
    audio = [speak(recordings, seconds * RATE, np.random.default_rng(number)) for number in range(streams)]
    tracks = {size: [encode(samples, size) for samples in audio] for size in frame_ms}
    cpu: dict[int, list[float]] = {size: [] for size in frame_ms}
    transcripts = []
    with server_process(None, max_streams=streams) as server:
        probe = Probe(server.url, server.pid)
        for _ in range(rounds):
            for size in frame_ms:
                spent, heard = asyncio.run(_run(probe, tracks[size], speed))
                cpu[size].append(spent)
                transcripts.append(heard)
    median = {size: float(np.median(spent)) for size, spent in cpu.items()}
    largest = max(frame_ms)
    return {
        "messages": {size: streams * seconds * 1000 // size for size in frame_ms},
        "server_cpu_seconds": {size: round(spent, 2) for size, spent in median.items()},
        "ratio_to_largest": {size: round(spent / median[largest], 2) for size, spent in median.items()},
        "microseconds_per_message": {
            size: round(1e6 * (spent - median[largest]) * size / (streams * seconds * 1000), 1)
            for size, spent in median.items()
            if size != largest
        },
        "transcripts_equal": all(heard == transcripts[0] for heard in transcripts),
    }
