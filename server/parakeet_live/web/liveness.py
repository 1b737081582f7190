"""When a session is warned or ended for its age, its silence, or the server's lateness. No clock of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parakeet_live.dialects.messages import EndReason, WarningCode

LAG_WARNING_SECONDS = 1.0
"""Lateness from which a client is warned; partials come every 0.16 s otherwise."""
LAG_REPEAT_SECONDS = 10.0
"""Least time between two such warnings."""
IDLE_NOTICE_SECONDS = 30.0
ENDING_NOTICE_SECONDS = 60.0
"""Longest time between a warning and the end it warns of; for short limits it is a fifth of them."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the client; ``details`` are the numbers in the message."""

    code: WarningCode
    message: str
    details: dict[str, int]


class Liveness:
    """Times are seconds of a monotonic clock; a limit of 0 means none."""

    def __init__(self, now: float, idle_timeout: float, max_session: float) -> None:
        self._idle_timeout = idle_timeout
        self._max_session = max_session
        self._opened = now
        self._heard = now
        self._warned_of_idleness = False
        self._warned_of_end = False
        self._warned_of_lag = float("-inf")

    def heard(self, now: float) -> None:
        """The client has sent audio or a message."""
        self._heard = now
        self._warned_of_idleness = False

    def check(self, now: float, lag: float) -> Iterator[Warn | EndReason]:
        """What is due: warnings, and the reason to end the session for. ``lag`` in seconds.

        No end without its warning at an earlier check, however late the checks come: what a client sent meanwhile is
        read between the two.
        """
        if self._max_session:
            left = self._opened + self._max_session - now
            if left <= 0 and self._warned_of_end:
                yield EndReason.SESSION_LIMIT
                return
            if left <= min(ENDING_NOTICE_SECONDS, self._max_session / 5) and not self._warned_of_end:
                self._warned_of_end = True
                yield _ending_soon(max(0.0, left))
        if self._idle_timeout:
            left = self._heard + self._idle_timeout - now
            if left <= 0 and self._warned_of_idleness:
                yield EndReason.IDLE_TIMEOUT
                return
            if left <= min(IDLE_NOTICE_SECONDS, self._idle_timeout / 5) and not self._warned_of_idleness:
                self._warned_of_idleness = True
                yield _idle_for(now - self._heard, max(0.0, left))
        if lag >= LAG_WARNING_SECONDS and now >= self._warned_of_lag + LAG_REPEAT_SECONDS:
            self._warned_of_lag = now
            yield _late(lag)


def _ending_soon(left: float) -> Warn:
    message = f"this session has nearly reached its longest time and ends in {left:.1f} s; open a new one"
    return Warn(WarningCode.SESSION_ENDING, message, {"remaining_ms": round(1000 * left)})


def _idle_for(idle: float, left: float) -> Warn:
    message = (
        f"nothing was received for {idle:.1f} s; the session ends in {left:.1f} s. Send audio, silence if need be, "
        'or {"type":"keepalive"}'
    )
    return Warn(
        WarningCode.IDLE, message, {"idle_ms": round(1000 * idle), "remaining_ms": round(1000 * left)}
    )


def _late(lag: float) -> Warn:
    message = (
        f"recognition is {lag:.1f} s behind your audio: the server is overloaded or too slow for this model. Nothing "
        "is lost, but text comes late"
    )
    return Warn(WarningCode.LAGGING, message, {"lag_ms": round(1000 * lag)})
