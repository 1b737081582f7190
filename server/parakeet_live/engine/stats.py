"""Counters of the engine since its start. Bounded, whatever the running time."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

TIME_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the time buckets, in seconds."""


@dataclass(slots=True)
class Histogram:
    """Counts by bucket; the last bucket holds everything above the last bound."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0
    largest: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.largest = max(self.largest, value)

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Upper bound of the bucket that holds the quantile; the largest value for the last bucket."""
        target = share * self.count
        seen = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            seen += count
            if count and seen >= target:
                return min(bound, self.largest)
        return self.largest


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

    def snapshot(self) -> dict[str, float | int]:
        """Plain numbers for people and for the benchmark; times in milliseconds."""
        numbers: dict[str, float | int] = {
            "batches": self.batch_size.count,
            "steps": int(self.batch_size.total),
            "encoder_frames": self.frames,
            "failures": self.failures,
            "busy_seconds": round(self.busy, 3),
            "batch_size_mean": round(self.batch_size.total / max(1, self.batch_size.count), 2),
        }
        for name in ("batch_time", "queue_time", "loop_delay"):
            histogram: Histogram = getattr(self, name)
            numbers[f"{name}_ms_mean"] = round(1000 * histogram.total / max(1, histogram.count), 2)
            for share in (0.5, 0.95, 0.99):
                numbers[f"{name}_ms_p{share * 100:g}"] = round(1000 * histogram.quantile(share), 2)
            numbers[f"{name}_ms_max"] = round(1000 * histogram.largest, 2)
        return numbers
