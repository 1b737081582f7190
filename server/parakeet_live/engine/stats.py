"""Counters of the engine since its start. Bounded, whatever the running time.

Two snapshots of the same engine can be differenced, which is how the benchmark measures a window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

TIME_BOUNDS = tuple(round(1e-4 * 1.1**step, 7) for step in range(120))
"""Upper bounds of the time buckets, in seconds: 0.1 ms to 8.4 s, each 10 % above the one before, so that a quantile
is never more than 10 % too high."""


@dataclass(slots=True)
class Histogram:
    """Counts by bucket; the last bucket holds everything above the last bound."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    largest: float = 0.0

    def __post_init__(self) -> None:
        if not self.counts:
            self.counts = [0] * (len(self.bounds) + 1)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`data`, in the unit of the data."""
        return cls(tuple(data["bounds"]), list(data["counts"]), data["total"], data["max"])

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.largest = max(self.largest, value)

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def mean(self) -> float:
        return self.total / max(1, self.count)

    def quantile(self, share: float) -> float:
        """Upper bound of the bucket that holds the quantile; the largest value for the last bucket."""
        target = share * self.count
        seen = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            seen += count
            if count and seen >= target:
                return min(bound, self.largest)
        return self.largest

    def since(self, earlier: Histogram) -> Histogram:
        """What was added after ``earlier``, a former state of this histogram.

        ``largest`` is exact if it was set since then, else the upper bound of the highest bucket with new values.
        """
        counts = [now - before for now, before in zip(self.counts, earlier.counts, strict=True)]
        largest = self.largest
        if largest == earlier.largest:
            highest = max((at for at, count in enumerate(counts) if count), default=None)
            largest = 0.0 if highest is None else min([largest, *self.bounds[highest : highest + 1]])
        return Histogram(self.bounds, counts, self.total - earlier.total, largest)

    def data(self, scale: float = 1.0) -> dict[str, Any]:
        """Plain numbers for people and programs; values are multiplied by ``scale``."""
        return {
            "count": self.count,
            "mean": round(scale * self.mean, 3),
            "p50": round(scale * self.quantile(0.5), 3),
            "p95": round(scale * self.quantile(0.95), 3),
            "p99": round(scale * self.quantile(0.99), 3),
            "max": round(scale * self.largest, 3),
            "total": round(scale * self.total, 3),
            "bounds": [round(scale * bound, 4) for bound in self.bounds],
            "counts": list(self.counts),
        }


@dataclass(slots=True)
class EngineStats:
    """What the engine did: ``busy`` is the time lanes spent in the backend, in seconds."""

    batch_size: Histogram
    batch_time: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS))
    queue_time: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS))
    loop_delay: Histogram = field(default_factory=lambda: Histogram(TIME_BOUNDS))
    frames: int = 0
    busy: float = 0.0
    failures: int = 0

    def snapshot(self) -> dict[str, Any]:
        """Plain numbers for people and for the benchmark; times in milliseconds."""
        return {
            "encoder_frames": self.frames,
            "failures": self.failures,
            "busy_ms": round(1000 * self.busy, 1),
            "batch_size": self.batch_size.data(),
            "batch_ms": self.batch_time.data(1000),
            "queue_ms": self.queue_time.data(1000),
            "loop_delay_ms": self.loop_delay.data(1000),
        }
