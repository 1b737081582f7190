"""One stream of a recognizer, as the server holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from parakeet_live.engine.arrivals import Arrivals
from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.events import Event, Final, Timing
from parakeet_live.session.session import Session
from parakeet_models.mel import Float32


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
        *,
        sample_rate: int,
        frame_samples: int,
    ) -> None:
        """``on_ready`` is called when a step can run, ``on_closed`` when the slot may be given back.

        ``sample_rate`` in Hz and ``frame_samples``, the samples of an encoder frame, are the model's.
        """
        self.slot = slot
        self.number = number
        self.closed = False
        self._client_away = False
        self.running = False
        """A step of this stream is on a lane."""
        self.ready_since: float | None = None
        self.last_step = clock()
        self._session = session
        self._on_ready = on_ready
        self._on_closed = on_closed
        self._clock = clock
        self._arrivals = Arrivals(sample_rate)
        self._frame_samples = frame_samples
        self._step_came = 0.0
        """When the last audio of the step taken last had come."""
        self._released = asyncio.Event()
        self._events: asyncio.Queue[Event | EngineError | None] = asyncio.Queue()
        self._progress = asyncio.Event()
        self._last_audio = 0.0
        self._audio_watch: asyncio.TimerHandle | None = None
        """Looks whether audio still comes; None once it has been found missing."""

    @property
    def backlog_ms(self) -> int:
        """Audio pushed but not yet recognised, in milliseconds."""
        return self._session.backlog_ms

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] mono in [-1, 1] at the recognizer's rate."""
        self._last_audio = self._clock()
        self._arrivals.add(len(samples), self._last_audio)
        if self._audio_watch is None:
            self._watch_audio()
        self._session.push(samples)
        self._notice()

    def configure(self, endpointing: EndpointingConfig) -> None:
        """Decide by these numbers from the audio pushed next on."""
        self._session.configure(endpointing)

    def finalize(self) -> None:
        """Flush: exactly one Final with reason FINALIZE follows, and the stream goes on."""
        self._arrivals.add(0, self._clock())
        self._report(self._session.finalize())

    def cancel(self) -> None:
        """Drop the current utterance and all audio that is waiting; the stream goes on."""
        self._report(self._session.cancel())
        self._arrivals.forget_before(self._recognised)

    def end(self) -> None:
        """No more audio: the rest is recognised, and Done is the last event."""
        self._arrivals.add(0, self._clock())
        self._report(self._session.end())

    def client_left(self) -> None:
        """Nobody can send audio now, and that is no pause of the speaker."""
        self._client_away = True

    def client_returned(self) -> None:
        """Audio may come again; how long none came counts from now."""
        self._client_away = False
        self._last_audio = self._clock()

    def close(self) -> None:
        """Give the slot back, at any moment; a step that is running is finished first and its result dropped."""
        if not self.closed:
            self.closed = True
            if self._audio_watch is not None:
                self._audio_watch.cancel()
            self._events.put_nowait(None)
            self._progress.set()
            if not self.running:
                self._release()

    async def released(self) -> None:
        """Return once the slot has been given back after :meth:`close`."""
        await self._released.wait()

    def _release(self) -> None:
        self._on_closed(self)
        self._released.set()

    def lag(self, now: float) -> float:
        """Seconds by which recognition is behind a speaker; 0 if the next step still waits for audio."""
        if self.closed or not (self.running or self.ready_since is not None):
            return 0.0
        return max(0.0, self._arrivals.late(self._recognised + self._frame_samples, now))

    @property
    def _recognised(self) -> int:
        return self._arrivals.received - self._session.backlog_samples

    def ahead(self, now: float) -> float:
        """Seconds of audio that have come before a live speaker could have spoken them."""
        return self._arrivals.ahead(now)

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
        oldest = self._arrivals.oldest()
        lagging = oldest is not None and now - oldest > lag_limit
        return max(size for size in sizes if size <= ready) if lagging else sizes[0]

    def take_step(self, frames: int) -> StepInput:
        """For the recognizer: the next step, which now runs."""
        self.running, self.ready_since = True, None
        self.last_step = self._clock()
        self._step_came = self._arrivals.came(self._recognised + frames * self._frame_samples)
        return self._session.next_step(self.slot, frames)

    def apply(self, emissions: list[Emission]) -> None:
        """For the recognizer: the result of the step taken last."""
        self.running = False
        if self.closed:
            self._release()
            return
        timing = self._timing()
        events = [
            replace(event, timing=timing) if isinstance(event, Final) else event
            for event in self._session.apply(emissions)
        ]
        self._arrivals.forget_before(self._recognised)
        self._report(events)

    def fail(self, error: EngineError) -> None:
        """For the recognizer: the stream cannot go on."""
        self.running = False
        if self.closed:
            self._release()
        else:
            self._events.put_nowait(error)
            self.close()

    def _watch_audio(self) -> None:
        """See to it that what is pending is committed, once no audio has come for the stream's ``no_audio_ms``."""
        delay = self._last_audio + self._session.endpointing.no_audio_ms / 1000 - self._clock()
        self._audio_watch = asyncio.get_running_loop().call_later(max(0.0, delay), self._miss_audio)

    def _miss_audio(self) -> None:
        behind = self.running or self._session.ready_frames or self._client_away
        if behind:
            # It is us who are late: the client may be waiting for us to take more. Or its connection is lost, and what
            # it says meanwhile will come.
            self._last_audio = self._clock()
        if behind or self._clock() < self._last_audio + self._session.endpointing.no_audio_ms / 1000:
            self._watch_audio()
        else:
            self._audio_watch = None
            self._report(self._session.no_audio())

    def _report(self, events: Sequence[Event]) -> None:
        """Hand out events of the session, and see what it can do next."""
        for event in events:
            self._events.put_nowait(event)
        self._progress.set()
        if self._session.done:
            self.close()
        else:
            self._notice()

    def _timing(self) -> Timing:
        """Where the time went between the audio that decided and now, when its step is done."""
        queue = round(1000 * (self.last_step - self._step_came))
        compute = round(1000 * (self._clock() - self.last_step))
        return Timing(queue, compute, queue + compute)

    def _notice(self) -> None:
        """Note since when a step is ready, and tell the scheduler."""
        if self.ready_since is None and not self.running and not self.closed and self._session.ready_frames:
            self.ready_since = self._clock()
            self._on_ready(self)
