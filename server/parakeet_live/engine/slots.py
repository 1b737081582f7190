"""Which slots of a backend are free."""

from __future__ import annotations

import heapq

from parakeet_live.engine.backend import CapacityError


class FreeSlots:
    """Gives out the lowest free slot, so that the slots in use are neighbours."""

    def __init__(self, slots: int) -> None:
        self.total = slots
        self._free = list(range(slots))

    def take(self) -> int:
        """Raises CapacityError if every slot is taken."""
        if not self._free:
            raise CapacityError(
                f"all {self.total} slots are taken; close a stream or raise the number of slots"
            )
        return heapq.heappop(self._free)

    def give(self, slot: int) -> None:
        """Take a slot back."""
        heapq.heappush(self._free, slot)
