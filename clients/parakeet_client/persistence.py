"""When to connect again, and when to give up: the rules alone, without sockets or a clock."""

from __future__ import annotations

import random
from collections.abc import Iterator

from parakeet_client.errors import RefusedError

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 4.0
"""Seconds between two attempts: doubled each time, and varied, so that many clients do not come back at once."""
LEAST_PATIENCE = 30.0
"""Seconds after a loss for which attempts go on, if the server's window is shorter: a new session may be had later."""
SILENCE_SECONDS = 20.0
"""Without any message for so long, although audio waits for its acknowledgement, a connection is taken for dead."""
SILENCE_AUDIO_SECONDS = 2.0
"""So much audio: the last second of what was sent is not acknowledged before more comes."""

_PASSING = frozenset(
    {"unreachable", "http_502", "http_503", "http_504", "server_full", "draining", "not_ready", "key_limit"}
)
"""Refusals that may be over by the next attempt."""
_FINAL_CLOSES = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
"""Close codes with which a server answers a fault of the client's, so that trying again is in vain. From 4000 on it is
the server's decision about this session."""


def pauses() -> Iterator[float]:
    """Seconds before each attempt; the first comes at once."""
    yield 0.0
    pause = FIRST_PAUSE
    while True:
        # Spreads clients, protects nothing:
        yield pause * random.uniform(0.5, 1.0)  # nosec B311
        pause = min(LONGEST_PAUSE, 2 * pause)


def patience(resume_window_ms: int) -> float:
    """Seconds after a loss for which attempts go on."""
    return max(LEAST_PATIENCE, resume_window_ms / 1000)


def is_passing(refusal: RefusedError) -> bool:
    """Whether the next attempt may succeed."""
    return refusal.code in _PASSING


def is_final(close_code: int | None) -> bool:
    """Whether a connection was closed for good."""
    return close_code is not None and (close_code in _FINAL_CLOSES or close_code >= 4000)
