"""The asynchronous engine: opens streams, batches their ready steps onto lanes, and hands their events out.

A lane is a thread that runs one batch at a time, on one core or in one process; a slot is in at most one batch, and
slots that live in the same place are never stepped at the same time. Sessions are only touched on the event loop, a
slot's caches only by the lane that runs it, so nothing needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from parakeet_live.engine.backend import Backend, EngineError, StepInput
from parakeet_live.engine.backends import open_backend
from parakeet_live.engine.cost import CostModel
from parakeet_live.engine.scheduler import BatchPolicy, ReadyStep
from parakeet_live.engine.stats import EngineStats, Histogram
from parakeet_live.engine.stream import Stream
from parakeet_live.engine.warmup import Capacity, warm_up
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import SileroModel
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts import AnyBundle
from parakeet_models.mel import Float32

MAX_WAIT = 0.13
"""Longest time a step waits for company, in seconds; less than the period of a live step, so none is overtaken."""
LAG_LIMIT = 2.0
"""Seconds after which waiting audio is processed in large steps."""
LOOP_PROBE = 0.05
"""Seconds between two measurements of the event loop's delay."""

log = logging.getLogger(__name__)


class Recognizer:
    """Owns a backend, its lanes and the streams on it. Use as ``async with``."""

    def __init__(
        self,
        bundle: AnyBundle,
        backend: Backend,
        *,
        lanes: int | None = None,
        max_batch: int | None = None,
        max_wait: float = MAX_WAIT,
    ) -> None:
        self._manifest = bundle.manifest
        self._vocabulary = Vocabulary.load(bundle)
        self._voice = SileroModel()
        self._backend = backend
        self._lanes = lanes or backend.lanes
        max_batch = max_batch or backend.best_batch
        self._policy = BatchPolicy(
            max_batch=max_batch,
            max_wait=max_wait,
            lanes=self._lanes,
            live_frames=self._manifest.step_sizes[0],
            period=self.step_ms / 1000,
        )
        self._cost = CostModel.measure(backend, self._manifest.mel.bins, self._manifest.step_sizes[0])
        self._streams: dict[int, Stream] = {}
        self._ready: dict[int, Stream] = {}
        """Streams with a step that can run, in the order in which they became ready."""
        self._live = 0
        """Streams that were sending audio when last counted."""
        self._again_at: float | None = None
        """When the scheduler will look again by itself."""
        self._opened = 0
        self._idle_lanes = self._lanes
        self._busy_homes: set[int] = set()
        """Where batches run now, if the backend's slots live in different places."""
        self._wake = asyncio.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.stats = EngineStats(batch_size=Histogram(tuple(float(n) for n in range(1, max_batch + 1))))

    @classmethod
    def load(cls, bundle: AnyBundle, *, max_streams: int = 64, lanes: int | None = None) -> Recognizer:
        """Load the bundle's network with room for ``max_streams`` concurrent streams, on ``lanes`` lanes."""
        return cls(bundle, open_backend(bundle, max_streams), lanes=lanes)

    @property
    def bundle_name(self) -> str:
        return self._manifest.name

    @property
    def languages(self) -> tuple[str, ...]:
        return self._manifest.languages

    @property
    def step_ms(self) -> int:
        """Audio per live step, in milliseconds."""
        return self._manifest.step_sizes[0] * self._frame_samples * 1000 // self.sample_rate

    @property
    def _frame_samples(self) -> int:
        """Samples of an encoder frame."""
        return SUBSAMPLING_FACTOR * self._manifest.mel.hop_length

    @property
    def frame_seconds(self) -> float:
        """Audio per encoder frame, in seconds."""
        return SUBSAMPLING_FACTOR * self._manifest.mel.hop_length / self.sample_rate

    @property
    def sample_rate(self) -> int:
        """Rate of the samples that streams take, in Hz."""
        return self._manifest.mel.sample_rate

    @property
    def active_streams(self) -> int:
        return len(self._streams)

    @property
    def largest_backlog_ms(self) -> int:
        """Audio received but not yet recognised of the stream that is furthest behind, in milliseconds."""
        return max((stream.backlog_ms for stream in self._streams.values()), default=0)

    @property
    def largest_lag(self) -> float:
        """Seconds by which the stream that is furthest behind its speaker is late."""
        now = time.monotonic()
        return max((stream.lag(now) for stream in self._streams.values()), default=0.0)

    @property
    def max_streams(self) -> int:
        return self._backend.slots

    @property
    def lanes(self) -> int:
        return self._lanes

    @property
    def step_cost_ms(self) -> float:
        """Time of one live step of one stream alone, as things are now, in milliseconds."""
        return self._cost.single * 1000

    def warm_up(self, speech: Float32) -> Capacity:
        """Before the first stream: run every kind of batch on this speech, and measure. Blocks for seconds."""
        return warm_up(
            self._backend, self._manifest, speech, lanes=self._lanes, max_batch=self._policy.max_batch
        )

    async def __aenter__(self) -> Self:
        self._pool = ThreadPoolExecutor(max_workers=self._lanes, thread_name_prefix="engine-lane")
        self._spawn(self._schedule())
        self._spawn(self._measure_loop_delay())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._pool is not None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Steps that run are nobody's any more, and one may hang.
        self._backend.shut_down()
        self._pool.shutdown(wait=True)
        for stream in list(self._streams.values()):
            stream.fail(EngineError("the engine was stopped"))

    def open(self, endpointing: EndpointingConfig = DEFAULT) -> Stream:
        """Open a stream. Raises CapacityError when every slot is taken."""
        session = Session(self._manifest, self._vocabulary, endpointing, self._voice)
        self._opened += 1
        slot = self._backend.open()
        stream = Stream(
            session,
            slot,
            self._opened,
            time.monotonic,
            self._became_ready,
            self._remove,
            sample_rate=self.sample_rate,
            frame_samples=self._frame_samples,
        )
        self._streams[stream.number] = stream
        return stream

    def _became_ready(self, stream: Stream) -> None:
        """A step can run. Wakes the scheduler only if that can change its decision: with many streams this is called
        more than a thousand times a second."""
        self._ready[stream.number] = stream
        ready = len(self._ready)
        enough = ready >= self._policy.max_batch or ready >= self._live
        if self._idle_lanes and (enough or self._again_at is None):
            self._wake.set()

    def _remove(self, stream: Stream) -> None:
        """Forget a closed stream whose slot no lane uses any more."""
        if self._streams.pop(stream.number, None) is not None:
            self._ready.pop(stream.number, None)
            self._backend.close(stream.slot)

    async def _schedule(self) -> None:
        """Dispatch batches to idle lanes until cancelled."""
        while True:
            timeout = None if self._again_at is None else max(0.0, self._again_at - time.monotonic())
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            self._again_at = self._dispatch()

    def _dispatch(self) -> float | None:
        """Start as many batches as there are idle lanes; returns when to look again."""
        while self._idle_lanes and self._ready:
            now = time.monotonic()
            sizes = self._manifest.step_sizes
            ready = [
                ReadyStep(stream.number, stream.ready_since, stream.step_frames(sizes, now, LAG_LIMIT))
                for stream in self._ready.values()
                if stream.ready_since is not None
                and self._backend.home_of(stream.slot) not in self._busy_homes
            ]
            if not ready:
                return None  # a lane that finishes looks again
            recent = now - 2 * self._policy.period
            self._live = sum(
                stream.ready_since is not None or stream.last_step > recent
                for stream in self._streams.values()
            )
            decision = self._policy.decide(ready, self._live, self._cost.single, now)
            if not decision.batch:
                return decision.again_at
            for step in decision.batch:
                self.stats.queue_time.add(now - step.since)
            streams = [self._ready.pop(step.stream) for step in decision.batch]
            frames = decision.batch[0].frames
            steps = [stream.take_step(frames) for stream in streams]
            self._idle_lanes -= 1
            homes = {home for step in steps if (home := self._backend.home_of(step.slot)) is not None}
            self._busy_homes |= homes
            self._spawn(self._run(streams, steps, homes))
        return None

    async def _run(
        self, streams: Sequence[Stream], steps: Sequence[StepInput], homes: Collection[int]
    ) -> None:
        """One batch on a lane; a failure is its streams' alone."""
        started = time.monotonic()
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._pool, self._backend.step, steps)
        except asyncio.CancelledError:
            # The server ends at once; whoever waits for these streams to be given back must not wait for ever.
            for stream in streams:
                stream.fail(EngineError("the engine was stopped"))
            raise
        except Exception as error:
            log.exception("the engine failed on a batch of %d streams", len(streams))
            self.stats.failures += 1
            for stream in streams:
                stream.fail(EngineError(f"the engine failed: {error}"))
        else:
            self._record(steps, time.monotonic() - started)
            for stream, emissions in zip(streams, results, strict=True):
                stream.apply(emissions)
        finally:
            self._idle_lanes += 1
            self._busy_homes.difference_update(homes)
            self._wake.set()

    def _record(self, steps: Sequence[StepInput], seconds: float) -> None:
        self.stats.batch_size.add(len(steps))
        self.stats.batch_time.add(seconds)
        self.stats.busy += seconds
        self.stats.frames += sum(step.frames for step in steps)
        if steps[0].frames == self._policy.live_frames:
            self._cost.observe(len(steps), seconds)

    async def _measure_loop_delay(self) -> None:
        while True:
            wanted = time.monotonic() + LOOP_PROBE
            await asyncio.sleep(LOOP_PROBE)
            self.stats.loop_delay.add(max(0.0, time.monotonic() - wanted))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
