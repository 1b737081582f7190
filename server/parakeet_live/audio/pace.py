"""Does audio arrive at the pace of speech? A steady pace that is off by the ratio of two rates is a wrong rate."""

from __future__ import annotations

WINDOW_SECONDS = 2.0
WINDOWS = 2
"""Windows in a row with the same ratio that make it steady."""
TOLERANCE = 0.06
TRUE_PACE = 0.2
"""So much may the pace of right audio be off, from a hiccup of the network."""
RATES = (8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000)
"""What audio usually has, in Hz."""


class PaceWatch:
    """Compares audio with the clock; times are seconds of a monotonic clock."""

    def __init__(self, declared_rate: int) -> None:
        self._declared = declared_rate
        self._begin: float | None = None
        self._audio = 0.0
        self._rate: int | None = None
        self._windows = 0
        self._told = False

    def received(self, seconds: float, now: float) -> int | None:
        """So much audio came; returns the rate that it probably has, once, when that is not the declared one."""
        if self._told:
            return None
        if self._begin is None:
            self._begin = now
            return None
        self._audio += seconds
        passed = now - self._begin
        if passed < WINDOW_SECONDS:
            return None
        pace, self._audio, self._begin = self._audio / passed, 0.0, now
        rate = self._rate_of(pace)
        self._windows = self._windows + 1 if rate == self._rate else 1
        self._rate = rate
        if rate is None or self._windows < WINDOWS:
            return None
        self._told = True
        return rate

    def _rate_of(self, pace: float) -> int | None:
        """The rate that turns into this pace when it is read as the declared one; None if the pace is right."""
        if abs(pace - 1) < TRUE_PACE:
            return None
        ratios = ((rate, rate / self._declared) for rate in RATES)
        return next((rate for rate, ratio in ratios if abs(pace - ratio) <= TOLERANCE * ratio), None)
