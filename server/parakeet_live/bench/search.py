"""The largest number of streams that a server holds."""

from __future__ import annotations

from collections.abc import Callable

from parakeet_live.bench.run import Run

LAG_GROWTH_LIMIT_MS = 250.0
"""A median latency that grows by more than this within a window is no noise: the server falls behind."""
RESOLUTION = 20
"""The search ends when its bounds are within one part of this."""


def shortcomings(run: Run, limit_ms: float) -> list[str]:
    """Why a run does not count as held; empty if it does."""
    reasons = []
    p95 = run.partial_latency_ms.p95
    if p95 is None:
        reasons.append("no partials came")
    elif p95 >= limit_ms:
        reasons.append(f"p95 partial latency {p95:.0f} ms")
    if run.failed_streams:
        reasons.append(f"{run.failed_streams} streams failed")
    if run.lag_growth_ms is not None and run.lag_growth_ms > LAG_GROWTH_LIMIT_MS:
        reasons.append(f"lag grew by {run.lag_growth_ms:.0f} ms")
    return reasons


def search_largest(holds: Callable[[int], bool], start: int, trials: int) -> int:
    """The largest number that ``holds``, found by doubling from ``start`` and then bisection; 0 if none does.

    ``trials`` bounds how often ``holds`` is asked.
    """
    good, bad, number = 0, None, start
    for _ in range(trials):
        if holds(number):
            good = number
        else:
            bad = number
        if bad is None:
            number = 2 * good
            continue
        if bad - good <= max(1, good // RESOLUTION):
            break
        number = (good + bad) // 2
    return good
