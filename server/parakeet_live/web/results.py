"""The results of one session: what is still to be sent, and what may have to be sent again after a reconnect."""

from __future__ import annotations

from collections import deque
from itertools import zip_longest

from parakeet_live.dialects.native import Result

COALESCE_FROM = 64
"""Unsent results from which a partial gives way to the next one. It holds the whole text of its utterance, so nothing
is lost; everything else is never dropped."""
KEPT_RESULTS = 256
"""Results kept after they were sent, for a connection that breaks before they arrive."""


class ResultsGoneError(Exception):
    """Results that the client has not seen are no longer kept."""


class ResultLog:
    """Bounded, whatever the client does: see :attr:`unsent` and KEPT_RESULTS."""

    def __init__(self) -> None:
        self._unsent: deque[Result] = deque()
        self._kept: deque[Result] = deque()
        """What was sent, without partials."""
        self._partial: Result | None = None
        """The partial that was sent last, unless a final followed."""
        self._forgotten = 0
        """Number of the newest result that is no longer kept."""

    @property
    def unsent(self) -> int:
        """Results that wait to be sent."""
        return len(self._unsent)

    def put(self, result: Result) -> bool:
        """Append a result. From COALESCE_FROM unsent ones on, it takes the place of a partial that it holds.

        True if one gave way.
        """
        replaces = len(self._unsent) >= COALESCE_FROM and result.supersedes and self._unsent[-1].replaceable
        if replaces:
            self._unsent.pop()
        self._unsent.append(result)
        return replaces

    def take(self) -> Result | None:
        """The next result to send; None if there is none."""
        if not self._unsent:
            return None
        result = self._unsent.popleft()
        if result.supersedes:
            self._partial = None
        if result.replaceable:
            self._partial = result
            return result
        self._kept.append(result)
        if len(self._kept) > KEPT_RESULTS:
            self._forgotten = self._kept.popleft().seq
        return result

    def rewind(self, seen: int) -> None:
        """Send everything after number ``seen`` again, of partials only the newest. Raises ResultsGoneError."""
        if seen < self._forgotten:
            raise ResultsGoneError
        sent = [*self._kept, *([self._partial] if self._partial else [])]
        waiting = [
            result for result in sorted([*sent, *self._unsent], key=lambda r: r.seq) if result.seq > seen
        ]
        self._kept = deque(result for result in self._kept if result.seq <= seen)
        self._unsent = deque(
            result
            for result, after in zip_longest(waiting, waiting[1:])
            if not (result.replaceable and after and after.supersedes)
        )
        if self._partial and self._partial.seq > seen:
            self._partial = None
