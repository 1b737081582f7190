"""When the audio of one stream came, and when its text was due. Times are seconds of a monotonic clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

RESOLUTION = 0.05
"""Seconds; arrivals closer than this share one time stamp, so that tiny frames cost nothing."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    position: int
    """Samples received before."""
    at: float
    due: float
    """When a live speaker would have spoken the sample at ``position``: never before it came, and never faster than
    real time after the sample before it."""


class Arrivals:
    """The time stamps of audio that still waits. Positions are samples of the stream."""

    def __init__(self, rate: int) -> None:
        """``rate`` of the samples, in Hz."""
        self._rate = rate
        self._waiting: deque[_Arrival] = deque()
        self._received = 0
        self._latest = float("-inf")
        """When something last came."""
        self._spoken_until = float("-inf")
        """When a live speaker would be through with what was received."""

    @property
    def received(self) -> int:
        """Samples received."""
        return self._received

    def add(self, samples: int, now: float) -> None:
        """``samples`` more have come, or a command (0 samples)."""
        self._latest = now
        if not samples:
            return
        due = max(now, self._spoken_until)
        if not self._waiting or now - self._waiting[-1].at > RESOLUTION:
            self._waiting.append(_Arrival(self._received, now, due))
        self._received += samples
        self._spoken_until = due + samples / self._rate

    def forget_before(self, position: int) -> None:
        """Audio before ``position`` has been recognised."""
        while len(self._waiting) > 1 and self._waiting[1].position <= position:
            self._waiting.popleft()
        if position >= self._received:
            self._waiting.clear()

    def oldest(self) -> float | None:
        """When the oldest waiting audio came."""
        return self._waiting[0].at if self._waiting else None

    def came(self, position: int) -> float:
        """When everything before ``position`` had come; beyond the audio, when the last command came."""
        if position > self._received or not self._waiting:
            return self._latest
        return self._covering(position).at

    def late(self, position: int, now: float) -> float:
        """Seconds since a live speaker would have spoken the sample at ``position``; negative before.

        So audio that comes faster than real time makes nobody late.
        """
        if not self._waiting:
            return 0.0
        arrival = self._covering(position)
        return now - arrival.due - (position - arrival.position) / self._rate

    def ahead(self, now: float) -> float:
        """Seconds of audio that have come before a live speaker could have spoken them."""
        return max(0.0, self._spoken_until - now)

    def _covering(self, position: int) -> _Arrival:
        """The time stamp of the last sample before ``position``."""
        for arrival in reversed(self._waiting):
            if arrival.position < position:
                return arrival
        return self._waiting[0]
