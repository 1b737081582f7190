"""Two clocks: what the model has heard, and what the client has sent. All in samples at 16 kHz.

A flush lets the model hear silence that is not in the client's audio. Everything the session reports is in the
client's time, so the silence is recorded here and taken out again; integers, so nothing drifts.
"""

from __future__ import annotations


class Timeline:
    """Maps positions in the model's stream to positions in the client's audio."""

    def __init__(self) -> None:
        self._inserts: list[tuple[int, int]] = []
        """(position in the model's stream, length) of each inserted silence not yet forgotten, ascending."""
        self._forgotten = 0

    def insert(self, position: int, length: int) -> None:
        """Record ``length`` samples of silence inserted at ``position`` of the model's stream."""
        if self._inserts and sum(self._inserts[-1]) == position:
            start, before = self._inserts[-1]
            self._inserts[-1] = (start, before + length)
        else:
            self._inserts.append((position, length))

    def client_position(self, position: int) -> int:
        """The client's position of a model position; inside inserted silence, the place it was inserted at."""
        removed = self._forgotten
        for start, length in self._inserts:
            if position <= start:
                break
            removed += min(length, position - start)
        return position - removed

    def forget_before(self, position: int) -> None:
        """Positions below ``position`` will not be asked for again."""
        while self._inserts and sum(self._inserts[0]) <= position:
            self._forgotten += self._inserts.pop(0)[1]
