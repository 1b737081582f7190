"""Two clocks: what the model has heard, and what the client has sent. All in samples at 16 kHz.

A flush lets the model hear silence that is not in the client's audio, and a cancelled turn leaves out audio that is.
Everything the session reports is in the client's time, so both are recorded here and taken out again; integers, so
nothing drifts.
"""

from __future__ import annotations


class Timeline:
    """Maps positions in the model's stream to positions in the client's audio."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, int]] = []
        """(position in the model's stream, length) of each inserted silence not yet forgotten, ascending; a negative
        length is client audio left out there."""
        self._forgotten = 0

    def insert(self, position: int, length: int) -> None:
        """Record ``length`` samples of silence inserted at ``position`` of the model's stream."""
        if self._changes and _end(self._changes[-1]) == position and self._changes[-1][1] > 0:
            start, before = self._changes[-1]
            self._changes[-1] = (start, before + length)
        else:
            self._changes.append((position, length))

    def skip(self, position: int, length: int) -> None:
        """Record ``length`` samples of the client that the model did not hear at ``position``."""
        if length:
            self._changes.append((position, -length))

    def client_position(self, position: int) -> int:
        """The client's position of a model position; inside inserted silence, the place it was inserted at."""
        removed = self._forgotten
        for start, length in self._changes:
            if position <= start:
                break
            removed += min(length, position - start)
        return position - removed

    def forget_before(self, position: int) -> None:
        """Positions below ``position`` will not be asked for again."""
        while self._changes and _end(self._changes[0]) < position:
            self._forgotten += self._changes.pop(0)[1]


def _end(change: tuple[int, int]) -> int:
    """Model position at which a change is over."""
    position, length = change
    return position + max(length, 0)
