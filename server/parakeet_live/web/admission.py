"""Who gets a stream, who waits for one, and who is told to come back later.

:class:`Admission` is the rule alone: no sockets, no clock, no tasks. :class:`Ticket` is one client's place in it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

RECENT_RELEASES = 16
"""So many recent ends of streams are what a waiting time is estimated from."""
RETRY_AFTER_SECONDS = 5
"""What a refused client is told while there is nothing to estimate from."""
LONGEST_RETRY_SECONDS = 60


class Standing(Enum):
    """Where a ticket stands."""

    WAITING = auto()
    ADMITTED = auto()
    GONE = auto()


class Ticket:
    """A client's claim to one stream. ``on_change`` is called when its standing or its position has changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.standing = Standing.WAITING
        self.on_change = on_change


class Admission:
    """At most ``size`` streams and ``max_waiting`` clients in a queue, first come, first served."""

    def __init__(self, size: int, max_waiting: int) -> None:
        self._size = size
        self._max_waiting = max_waiting
        self._held = False
        self._admitted: set[Ticket] = set()
        self._queue: deque[Ticket] = deque()
        self._releases: deque[float] = deque(maxlen=RECENT_RELEASES)

    @property
    def size(self) -> int:
        """Streams at the same time, at most."""
        return self._size

    @property
    def in_use(self) -> int:
        return len(self._admitted)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def held(self) -> bool:
        """True while nobody is admitted although there may be room."""
        return self._held

    @property
    def left(self) -> int:
        """Clients that would be admitted at once."""
        return 0 if self._held else max(0, self._size - len(self._admitted) - len(self._queue))

    def arrive(self, on_change: Callable[[], None]) -> Ticket | None:
        """A client comes: admitted, or waiting; None if the queue is full too."""
        ticket = Ticket(on_change)
        if self.left:
            self._admit(ticket)
            return ticket
        if len(self._queue) >= self._max_waiting:
            return None
        self._queue.append(ticket)
        return ticket

    def leave(self, ticket: Ticket, now: float) -> None:
        """A client is through, or tired of waiting. A second call for the same ticket does nothing."""
        if ticket.standing is Standing.ADMITTED:
            self._admitted.discard(ticket)
            self._releases.append(now)
        elif ticket.standing is Standing.WAITING:
            self._queue.remove(ticket)
        ticket.standing = Standing.GONE
        self._refill()

    def hold(self, held: bool) -> None:
        """Admit nobody until told otherwise: the streams that are open need the machine."""
        self._held = held
        self._refill()

    def close(self) -> None:
        """Send everyone in the queue away, and let nobody in any more."""
        self._size = 0
        self._max_waiting = 0
        while self._queue:
            ticket = self._queue.popleft()
            ticket.standing = Standing.GONE
            ticket.on_change()

    def position(self, ticket: Ticket) -> int:
        """Place in the queue, from 1."""
        return self._queue.index(ticket) + 1

    def estimated_wait(self, position: int, now: float) -> float | None:
        """Seconds until the client at ``position`` is served, at the rate at which streams ended lately."""
        if len(self._releases) < 2:
            return None
        # What has gone by since the last release counts: a pool that has come to a stop is not fast.
        return position * (now - self._releases[0]) / len(self._releases)

    def retry_after(self, now: float) -> int:
        """Seconds after which a refused client may try again."""
        wait = self.estimated_wait(len(self._queue) + 1, now)
        if wait is None:
            return RETRY_AFTER_SECONDS
        return min(LONGEST_RETRY_SECONDS, max(1, math.ceil(wait)))

    def _admit(self, ticket: Ticket) -> None:
        ticket.standing = Standing.ADMITTED
        self._admitted.add(ticket)

    def _refill(self) -> None:
        while self._queue and not self._held and len(self._admitted) < self._size:
            ticket = self._queue.popleft()
            self._admit(ticket)
            ticket.on_change()
        for ticket in self._queue:
            ticket.on_change()
