"""One stream of a recognizer, as the server holds it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.events import Event
from parakeet_live.session.session import Session
from parakeet_models.mel import Float32

ARRIVAL_RESOLUTION = 0.05
"""Seconds; arrivals closer than this share one time stamp, so that tiny frames cost nothing."""


class Stream:
    """Every method is called on the event loop; none blocks."""

    def __init__(
        self,
        session: Session,
        slot: int,
        number: int,
        clock: Callable[[], float],
        on_ready: Callable[[Stream], None],
        on_closed: Callable[[Stream], None],
    ) -> None:
        """``on_ready`` is called when a step can run, ``on_closed`` when the slot may be given back."""
        self.slot = slot
        self.number = number
        self.closed = False
        self.running = False
        """A step of this stream is on a lane."""
        self.ready_since: float | None = None
        self.last_step = clock()
        self._session = session
        self._on_ready = on_ready
        self._on_closed = on_closed
        self._clock = clock
        self._arrivals: deque[tuple[int, float]] = deque()
        """(samples received before, time) of audio that is still waiting."""
        self._received = 0
        self._events: asyncio.Queue[Event | EngineError | None] = asyncio.Queue()
        self._progress = asyncio.Event()

    @property
    def backlog_ms(self) -> int:
        """Audio pushed but not yet recognised, in milliseconds."""
        return self._session.backlog_ms

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] mono in [-1, 1] at the recognizer's rate."""
        now = self._clock()
        if not self._arrivals or now - self._arrivals[-1][1] > ARRIVAL_RESOLUTION:
            self._arrivals.append((self._received, now))
        self._received += len(samples)
        self._session.push(samples)
        self._notice()

    def configure(self, endpointing: EndpointingConfig) -> None:
        """Decide by these numbers from the audio pushed next on."""
        self._session.configure(endpointing)

    def finalize(self) -> None:
        """Flush: exactly one Final with reason FINALIZE follows, and the stream goes on."""
        self._report(self._session.finalize())

    def cancel(self) -> None:
        """Drop the current utterance and all audio that is waiting; the stream goes on."""
        self._arrivals.clear()
        self._report(self._session.cancel())

    def end(self) -> None:
        """No more audio: the rest is recognised, and Done is the last event."""
        self._report(self._session.end())

    def close(self) -> None:
        """Give the slot back, at any moment; a step that is running is finished first and its result dropped."""
        if not self.closed:
            self.closed = True
            self._events.put_nowait(None)
            self._progress.set()
            if not self.running:
                self._on_closed(self)

    async def wait_below(self, backlog_ms: int) -> None:
        """Return once the backlog is at most ``backlog_ms``, or the stream is closed."""
        while self._session.backlog_ms > backlog_ms and not self.closed:
            self._progress.clear()
            await self._progress.wait()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Events as they come; ends after Done or close. Raises EngineError if the engine failed."""
        while (item := await self._events.get()) is not None:
            if isinstance(item, EngineError):
                raise item
            yield item

    def step_frames(self, sizes: Sequence[int], now: float, lag_limit: float) -> int:
        """For the recognizer: encoder frames of the next step, which is ready.

        The live step unless the oldest waiting audio is older than ``lag_limit`` seconds; then the largest.
        """
        ready = self._session.ready_frames
        lagging = self._arrivals and now - self._arrivals[0][1] > lag_limit
        return max(size for size in sizes if size <= ready) if lagging else sizes[0]

    def take_step(self, frames: int) -> StepInput:
        """For the recognizer: the next step, which now runs."""
        self.running, self.ready_since = True, None
        self.last_step = self._clock()
        return self._session.next_step(self.slot, frames)

    def apply(self, emissions: list[Emission]) -> None:
        """For the recognizer: the result of the step taken last."""
        self.running = False
        if self.closed:
            self._on_closed(self)
            return
        events = self._session.apply(emissions)
        waiting_from = self._received - self._session.backlog_samples
        while len(self._arrivals) > 1 and self._arrivals[1][0] <= waiting_from:
            self._arrivals.popleft()
        if self._received == waiting_from:
            self._arrivals.clear()
        self._report(events)

    def fail(self, error: EngineError) -> None:
        """For the recognizer: the stream cannot go on."""
        self.running = False
        if self.closed:
            self._on_closed(self)
        else:
            self._events.put_nowait(error)
            self.close()

    def _report(self, events: Sequence[Event]) -> None:
        """Hand out events of the session, and see what it can do next."""
        for event in events:
            self._events.put_nowait(event)
        self._progress.set()
        if self._session.done:
            self.close()
        else:
            self._notice()

    def _notice(self) -> None:
        """Note since when a step is ready, and tell the scheduler."""
        if self.ready_since is None and not self.running and not self.closed and self._session.ready_frames:
            self.ready_since = self._clock()
            self._on_ready(self)
