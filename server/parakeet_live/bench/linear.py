"""Does cost grow linearly with the number of streams?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LINEAR_RANGE = (8, 64)
"""Numbers of streams between which it should. Below, a machine is mostly idle; above, few machines hold."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through the origin: ``slope`` cores for each stream; (streams, relative deviation) of each point."""

    slope: float
    deviations: tuple[tuple[int, float], ...]

    @property
    def largest_deviation(self) -> float:
        """Without its sign."""
        return max(abs(deviation) for _, deviation in self.deviations)


def fit_line(points: Sequence[tuple[int, float | None]]) -> Line | None:
    """The least-squares line through the origin and (streams, processor seconds for each second of each stream).

    What is fitted is the cost of all streams together. Points outside LINEAR_RANGE and unknown costs are left out;
    None with fewer than two numbers of streams, which any line fits.
    """
    first, last = LINEAR_RANGE
    costs = [(n, n * each) for n, each in points if first <= n <= last and each is not None]
    if len({n for n, _ in costs}) < 2:
        return None
    slope = sum(n * cost for n, cost in costs) / sum(n * n for n, _ in costs)
    if slope == 0:
        return None
    return Line(slope, tuple((n, cost / (slope * n) - 1) for n, cost in costs))
