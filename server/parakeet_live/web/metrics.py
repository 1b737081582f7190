"""``GET /metrics`` for Prometheus.

What the engine counts anyway is read when somebody asks, so it costs nothing while people talk. Names and units follow
Prometheus' conventions.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from parakeet_live.engine import stats
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.web.lifecycle import Lifecycle, NotReadyError, Phase

PREFIX = "parakeet_live"
BOUNDS_STEP = 8
"""Every so many bounds of the engine's fine histograms become one of Prometheus': each 2.1 times the one before."""


class ServerMetrics:
    """The counters of one server."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StateCollector(lifecycle))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _StateCollector(Collector):
    """What the lifecycle and the engine know at the moment."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def collect(self) -> Iterator[Metric]:
        lifecycle = self._lifecycle
        ready = lifecycle.status == Phase.READY
        yield _gauge("ready", "1 if a new client would be admitted.", float(ready))
        state = GaugeMetricFamily(
            f"{PREFIX}_state", "1 for the state that the server is in.", labels=["state"]
        )
        for name in [*Phase, "saturated"]:
            state.add_metric([str(name)], float(lifecycle.status == name))
        yield state
        if lifecycle.capacity is not None:
            yield _gauge(
                "real_time_factor",
                "Seconds of work for one second of audio of a single stream, measured at the start.",
                lifecycle.capacity.real_time_factor,
            )
            yield _gauge(
                "streams_suggested_max",
                "Live streams that this machine carries, measured at the start.",
                lifecycle.capacity.streams,
            )
        try:
            recognizer = lifecycle.recognizer
        except NotReadyError:
            return
        yield from _engine(recognizer)


def _engine(recognizer: Recognizer) -> Iterator[Metric]:
    counts = recognizer.stats
    yield InfoMetricFamily(
        PREFIX,
        "Version and model.",
        {"version": version("parakeet-live"), "model": recognizer.bundle_name},
    )
    yield _gauge("streams_active", "Streams in use.", recognizer.active_streams)
    yield _gauge("streams_max", "Streams at the same time, at most.", recognizer.max_streams)
    yield _gauge("lanes", "Batches that run at the same time.", recognizer.lanes)
    yield _gauge(
        "largest_backlog_seconds",
        "Audio received but not yet recognised, of the stream furthest behind.",
        recognizer.largest_backlog_ms / 1000,
    )
    yield _gauge(
        "step_cost_seconds",
        "Time of one step of one stream alone, as things are now.",
        recognizer.step_cost_ms / 1000,
    )
    yield _counter("recognised_audio_seconds", "Audio recognised.", counts.frames * recognizer.frame_seconds)
    yield _counter("lane_busy_seconds", "Time that lanes spent in the network.", counts.busy)
    yield _counter("batch_failures", "Batches that failed.", counts.failures)
    yield _histogram("batch_size", "Streams in one batch.", counts.batch_size, 1)
    yield _histogram("batch_seconds", "Time of one batch.", counts.batch_time, BOUNDS_STEP)
    yield _histogram(
        "step_queue_seconds", "From a step being ready to its batch starting.", counts.queue_time, BOUNDS_STEP
    )
    yield _histogram(
        "loop_delay_seconds",
        "How late the event loop ran a timer, probed all the time.",
        counts.loop_delay,
        BOUNDS_STEP,
    )


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"{PREFIX}_{name}", text, value)


def _histogram(name: str, text: str, values: stats.Histogram, step: int) -> HistogramMetricFamily:
    """Cumulative counts at every ``step``-th bound of the engine's histogram."""
    buckets, below = [], 0
    for index, (bound, count) in enumerate(zip(values.bounds, values.counts, strict=False)):
        below += count
        if index % step == step - 1:
            buckets.append((repr(float(bound)), float(below)))
    buckets.append(("+Inf", float(values.count)))
    return HistogramMetricFamily(f"{PREFIX}_{name}", text, buckets, values.total)
