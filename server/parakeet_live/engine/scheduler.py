"""Which ready steps to run next, and when: the policy alone, without clocks or threads.

One batch reads the weights once, whatever its size, so small batches waste the processor; waiting for company costs
latency. The policy waits only when that pays: when running every step at once would keep the lanes busy for more than
``WAIT_FROM_UTILISATION`` of the time. It never waits longer than ``max_wait``, nor for streams that send nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WAIT_FROM_UTILISATION = 0.25
"""Below this the processor has time to spare and every step runs at once."""


@dataclass(frozen=True, slots=True)
class ReadyStep:
    """A stream whose next step can run.

    ``since`` is when it became ready: its audio was there and the step before it was done. A stream that uploads
    faster than real time is therefore never ahead of its neighbours in the queue.
    """

    stream: int
    since: float
    frames: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Run ``batch`` now; if it is empty, ask again at ``again_at`` (None: when something changes)."""

    batch: tuple[ReadyStep, ...] = ()
    again_at: float | None = None


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Earliest ready first, in batches of one step size.

    ``max_batch`` live steps go into one batch, fewer larger ones; ``max_wait`` seconds is the longest a step waits
    for company; ``live_frames`` and ``period`` are the encoder frames and the seconds of a live step.
    """

    max_batch: int
    max_wait: float
    lanes: int
    live_frames: int
    period: float

    def decide(self, ready: Sequence[ReadyStep], live: int, single_cost: float, now: float) -> Decision:
        """What to run on an idle lane.

        ``live`` is the number of streams that are sending audio, ``single_cost`` the seconds of a batch of one step.
        """
        again_at: float | None = None
        queue = sorted(ready, key=lambda step: step.since)
        for frames in dict.fromkeys(step.frames for step in queue):
            group = [step for step in queue if step.frames == frames]
            due = group[0].since + self.wait(live, single_cost)
            # Large steps in small batches: memory and the time that everyone else waits stay those of a live batch.
            most = max(1, self.max_batch * self.live_frames // frames)
            complete = len(group) >= most or len(ready) >= live
            if complete or frames != self.live_frames or now >= due:
                return Decision(batch=tuple(group[:most]))
            again_at = due if again_at is None else min(again_at, due)
        return Decision(again_at=again_at)

    def wait(self, live: int, single_cost: float) -> float:
        """How long a step waits for company, in seconds."""
        utilisation = live * single_cost / (self.lanes * self.period)
        return self.max_wait if utilisation > WAIT_FROM_UTILISATION else 0.0
