"""``GET /metrics`` for Prometheus.

Everything is counted elsewhere, in plain numbers, and read when somebody asks: it costs nothing while people talk.
Names and units follow Prometheus' conventions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

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

from parakeet_live.audio.formats import TARGET_RATE
from parakeet_live.engine import stats
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.web.lifecycle import Lifecycle, NotReadyError, Phase
from parakeet_live.web.observer import Observer
from parakeet_live.web.service import StreamService

PREFIX = "parakeet_live"
BOUNDS_STEP = 8
"""Every so many bounds of the engine's fine histograms become one of Prometheus': each 2.1 times the one before."""
BATCH_STEP = 4
"""The same for the sizes of batches: 4, 8, 12, ..."""


class ServerMetrics:
    """The counters of one server."""

    def __init__(self, lifecycle: Lifecycle, observer: Observer) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StateCollector(lifecycle))
        self._registry.register(_EventCollector(observer))
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
            recognizer, service = lifecycle.recognizer, lifecycle.service
        except NotReadyError:
            return
        yield from _engine(recognizer)
        yield from _pool(service)


class _EventCollector(Collector):
    """What has happened to sessions and utterances."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def collect(self) -> Iterator[Metric]:
        seen = self._observer
        yield _counter("sessions_opened", "Sessions that got a stream.", seen.opened)
        yield _counters("sessions_closed", "Sessions that are over, by close code.", "code", seen.closed)
        yield _counter("sessions_resumed", "Connections that went on with a session.", seen.resumed)
        yield _counters("refusals", "Connections refused, by error code.", "code", seen.refused)
        yield _counter("audio_seconds", "Audio received.", seen.audio_samples / TARGET_RATE)
        yield _counters("finals", "Finals with text, by reason.", "reason", seen.finals)
        yield _counter(
            "partials_dropped",
            "Partials that gave way to a newer one because their client reads slowly.",
            seen.partials_dropped,
        )
        for name, text, values in (
            ("total", "From the audio that decided a final being received to the final.", seen.final_total),
            ("queue", "The part of it before the step began.", seen.final_queue),
            ("compute", "The part of it in the step.", seen.final_compute),
        ):
            yield _histogram(f"final_{name}_seconds", text, values, 1)


def _engine(recognizer: Recognizer) -> Iterator[Metric]:
    counts = recognizer.stats
    yield InfoMetricFamily(
        PREFIX,
        "Version and model.",
        {"version": version("parakeet-live"), "model": recognizer.bundle_name},
    )
    yield _gauge("streams_active", "Streams in use.", recognizer.active_streams)
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
    yield _histogram("batch_size", "Streams in one batch.", counts.batch_size, BATCH_STEP)
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


def _pool(service: StreamService) -> Iterator[Metric]:
    pool = service.admission
    yield _gauge("streams_max", "Streams at the same time, at most.", pool.size)
    yield _gauge("streams_left", "Clients that would be admitted at once.", pool.left)
    yield _gauge("clients_waiting", "Clients in the queue.", pool.waiting)
    yield _gauge(
        "sessions_detached", "Sessions that wait for their client to come back.", service.sessions.detached
    )
    yield _gauge("overloaded", "1 while nobody is admitted because streams lag.", float(pool.held))


def _counters(name: str, text: str, label: str, values: Mapping[Any, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=[label])
    for value, count in values.items():
        family.add_metric([str(value)], count)
    return family


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
