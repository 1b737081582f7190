"""One run: so many streams for so long against one server, and every figure that comes of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parakeet_live.bench.load import open_streams, play, play_alone
from parakeet_live.bench.probe import Probe, Snapshot
from parakeet_live.bench.results import (
    Latency,
    Quantiles,
    StreamResult,
    Utterance,
    lag_growth_ms,
    quantiles,
    read_log,
)
from parakeet_live.bench.tracks import Track
from parakeet_live.engine.stats import Histogram

START_SECONDS = 1.0
"""Streams start at random moments within this time."""

Transcript = tuple[Utterance, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """How a server is loaded. ``seconds`` are counted, the ``warm_up`` before them is not."""

    seconds: float
    warm_up: float
    seed: int

    @property
    def track_seconds(self) -> float:
        """Audio of one stream: it is still talking when the window ends, however late it started."""
        return START_SECONDS + self.warm_up + self.seconds


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run. None: could not be had, or nothing to measure. Times in ms, memory in 10^6 bytes."""

    streams: int
    window_seconds: float
    server_cpu_per_stream: float | None
    """Processor seconds of the server, user and system, for each second of each stream."""
    generator_cpu_per_stream: float
    other_cpu_cores: float | None
    """Cores kept busy by everything else on the machine: how quiet it was."""
    partial_latency_ms: Quantiles
    final_latency_ms: Quantiles
    """Of finals that the model ended."""
    batch_size: Quantiles | None
    batch_ms: Quantiles | None
    queue_ms: Quantiles | None
    loop_delay_ms: Quantiles | None
    step_cost_ms: float | None
    """What the server took for one live step of one stream when it started."""
    lane_load: float | None
    """Share of the time that lanes were busy."""
    largest_backlog_ms: int | None
    """Of any stream, at the end of the window: audio received but not yet recognised."""
    lag_growth_ms: float | None
    drain_ms: Quantiles
    """From the last audio of a stream to the end of its results."""
    send_delay_ms: Quantiles
    """How late the generator sent frames; a busy generator makes its figures worthless."""
    rss_idle_mb: float | None
    rss_mb: float | None
    memory_mb_per_stream: float | None
    failed_streams: int
    problems: dict[str, int]
    """What went wrong, and on how many streams."""
    finals: int
    words: int
    streams_differing: int
    transcripts_equal: bool
    """Every stream's finals have the texts and word times of its track alone."""


async def transcribe_alone(probe: Probe, tracks: Sequence[Track]) -> list[Transcript]:
    """The transcript of each track when it is the only stream, one after the other. Raises ReferenceFailedError."""
    transcripts = []
    for number, track in enumerate(tracks):
        result = read_log(await play_alone(probe, track, number))
        if result.problem:
            raise ReferenceFailedError(f"a single stream failed: {result.problem}")
        transcripts.append(result.transcript)
    return transcripts


class ReferenceFailedError(Exception):
    """The server fails on one stream alone, so there is nothing to measure."""


async def measure(
    probe: Probe, tracks: Sequence[Track], alone: Sequence[Transcript], streams: int, load: Load
) -> Run:
    """Play ``streams`` streams in real time and measure the window after the warm-up."""
    idle_mb = probe.rss_mb()
    players = await open_streams(probe, tracks, streams)
    begin = time.monotonic() + START_SECONDS
    offsets = np.random.default_rng(load.seed).uniform(-START_SECONDS, 0, streams)
    playing = asyncio.create_task(play(players, [begin + float(offset) for offset in offsets]))
    await asyncio.sleep(begin + load.warm_up - time.monotonic())
    before = await asyncio.to_thread(probe.snapshot)
    await asyncio.sleep(before.at + load.seconds - time.monotonic())
    after = await asyncio.to_thread(probe.snapshot)
    await playing
    await asyncio.gather(*(player.finish() for player in players))

    results = [read_log(player.log) for player in players]
    late = [
        1000 * (at - player.log.due(frame))
        for player in players
        for frame, at in enumerate(player.log.sent)
        if before.at <= at < after.at
    ]
    equal = [
        result.transcript == alone[player.log.track] for result, player in zip(results, players, strict=True)
    ]
    return Run(
        streams=streams,
        **_processor(before, after, streams),
        **_engine(before, after),
        **_memory(idle_mb, after.rss_mb, streams),
        **_latencies(results, before.at, after.at),
        drain_ms=quantiles(result.drain_ms for result in results if result.drain_ms is not None),
        send_delay_ms=quantiles(late),
        failed_streams=sum(bool(result.problem) for result in results),
        problems=dict(Counter(result.problem for result in results if result.problem)),
        finals=sum(len(result.transcript) for result in results),
        words=sum(len(words) for result in results for _, words in result.transcript),
        streams_differing=equal.count(False),
        transcripts_equal=all(equal),
    )


def _processor(before: Snapshot, after: Snapshot, streams: int) -> dict[str, Any]:
    seconds = after.at - before.at
    generator = after.generator_cpu - before.generator_cpu
    server = other = None
    if before.server_cpu is not None and after.server_cpu is not None:
        server = after.server_cpu - before.server_cpu
        other = round((after.machine_cpu - before.machine_cpu - server - generator) / seconds, 3)
    return {
        "window_seconds": round(seconds, 3),
        "server_cpu_per_stream": None if server is None else round(server / (seconds * streams), 5),
        "generator_cpu_per_stream": round(generator / (seconds * streams), 5),
        "other_cpu_cores": other,
    }


def _engine(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """The server's own statistics of the window."""
    histograms = ("batch_size", "batch_ms", "queue_ms", "loop_delay_ms")
    if before.stats is None or after.stats is None:
        return dict.fromkeys((*histograms, "step_cost_ms", "lane_load", "largest_backlog_ms"))
    first, last = before.stats["engine"], after.stats["engine"]
    figures: dict[str, Any] = {
        name: _quantiles(Histogram.from_data(last[name]).since(Histogram.from_data(first[name])))
        for name in histograms
    }
    busy = (last["busy_ms"] - first["busy_ms"]) / 1000
    figures["lane_load"] = round(busy / (after.stats["lanes"] * (after.at - before.at)), 3)
    figures["step_cost_ms"] = after.stats["step_cost_ms"]
    figures["largest_backlog_ms"] = after.stats["streams"]["largest_backlog_ms"]
    return figures


def _quantiles(histogram: Histogram) -> Quantiles:
    if histogram.count == 0:
        return Quantiles(0)
    shares = [histogram.quantile(share) for share in (0.5, 0.95, 0.99)]
    numbers = [round(number, 2) for number in (histogram.mean, *shares, histogram.largest)]
    return Quantiles(histogram.count, *numbers)


def _memory(idle_mb: float | None, rss_mb: float | None, streams: int) -> dict[str, Any]:
    return {
        "rss_idle_mb": None if idle_mb is None else round(idle_mb, 1),
        "rss_mb": None if rss_mb is None else round(rss_mb, 1),
        "memory_mb_per_stream": (
            None if idle_mb is None or rss_mb is None else round((rss_mb - idle_mb) / streams, 2)
        ),
    }


def _latencies(results: Sequence[StreamResult], begin: float, end: float) -> dict[str, Any]:
    """Results for audio that was sent in the window, whenever they came: slow ones must not escape."""

    def within(latencies: Sequence[Latency]) -> list[float]:
        return [latency.ms for latency in latencies if begin <= latency.sent < end]

    partials = [latency for result in results for latency in result.partials]
    return {
        "partial_latency_ms": quantiles(within(partials)),
        "final_latency_ms": quantiles(ms for result in results for ms in within(result.finals)),
        "lag_growth_ms": lag_growth_ms(partials, begin, end),
    }
