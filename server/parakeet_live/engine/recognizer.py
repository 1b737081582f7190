"""The asynchronous engine: opens streams, batches their ready steps, and hands their events out.

One lane: a thread that runs the backend's steps one after the other. Sessions are only touched on the event loop,
the backend only on the lane, so neither needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from parakeet_live.engine.backend import Backend, Emission, EngineError, StepInput
from parakeet_live.engine.onnx import OnnxBackend
from parakeet_live.session.events import Event
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import Bundle
from parakeet_models.mel import Float32

MAX_BATCH = 16
"""Steps in one backend call. Larger batches gain nothing on a CPU core and make everyone wait longer."""

log = logging.getLogger(__name__)


class Recognizer:
    """Owns a backend, its lane and the streams on it. Use as ``async with``."""

    def __init__(self, bundle: Bundle, backend: Backend) -> None:
        self._manifest = bundle.manifest
        self._vocabulary = Vocabulary.load(bundle)
        self._backend = backend
        self._streams: list[Stream] = []
        self._wake = asyncio.Event()
        self._lane: ThreadPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def load(cls, bundle: Bundle, *, max_streams: int = 64) -> Recognizer:
        """Load the bundle's network with room for ``max_streams`` concurrent streams."""
        return cls(bundle, OnnxBackend(bundle, max_streams))

    @property
    def bundle_name(self) -> str:
        return self._manifest.name

    @property
    def languages(self) -> tuple[str, ...]:
        return self._manifest.languages

    @property
    def step_ms(self) -> int:
        """Audio per live step, in milliseconds."""
        return self._manifest.step_sizes[0] * 8 * self._manifest.mel.hop_length * 1000 // self.sample_rate

    @property
    def sample_rate(self) -> int:
        """Rate of the samples that streams take, in Hz."""
        return self._manifest.mel.sample_rate

    @property
    def active_streams(self) -> int:
        return len(self._streams)

    @property
    def max_streams(self) -> int:
        return self._backend.slots

    async def __aenter__(self) -> Self:
        self._lane = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine-lane")
        self._task = asyncio.create_task(self._run(), name="engine-scheduler")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        assert self._lane is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._lane.shutdown(wait=True)
        for stream in list(self._streams):
            stream.fail(EngineError("the engine was stopped"))
            self._remove(stream)

    def open(self) -> Stream:
        """Open a stream. Raises CapacityError when every slot is taken."""
        session = Session(self._manifest, self._vocabulary)
        stream = Stream(session, self._backend.open(), self._wake)
        self._streams.append(stream)
        return stream

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while batch := self._ready():
                steps = [step for _, step in batch]
                try:
                    results = await loop.run_in_executor(self._lane, self._backend.step, steps)
                except Exception as error:
                    log.exception("the engine failed on a batch of %d streams", len(batch))
                    for stream, _ in batch:
                        stream.fail(EngineError(f"the engine failed: {error}"))
                    continue
                for (stream, _), emissions in zip(batch, results, strict=True):
                    stream.apply(emissions)

    def _ready(self) -> list[tuple[Stream, StepInput]]:
        """Up to MAX_BATCH ready steps; streams that got one go to the back of the queue, so all get their turn."""
        batch: list[tuple[Stream, StepInput]] = []
        for stream in list(self._streams):
            if stream.closed:
                self._remove(stream)
            elif len(batch) < MAX_BATCH and (step := stream.next_step()) is not None:
                batch.append((stream, step))
                self._streams.remove(stream)
                self._streams.append(stream)
        return batch

    def _remove(self, stream: Stream) -> None:
        """Forget a closed stream; called only while no step runs, so its slot is free to be reused."""
        self._streams.remove(stream)
        self._backend.close(stream.slot)


class Stream:
    """One stream of a recognizer. Every method is called on the event loop; none blocks."""

    def __init__(self, session: Session, slot: int, wake: asyncio.Event) -> None:
        self.slot = slot
        self.closed = False
        self._session = session
        self._wake = wake
        self._events: asyncio.Queue[Event | EngineError | None] = asyncio.Queue()
        self._progress = asyncio.Event()

    @property
    def backlog_ms(self) -> int:
        """Audio pushed but not yet recognised, in milliseconds."""
        return self._session.backlog_ms

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] mono in [-1, 1] at the recognizer's rate."""
        self._session.push(samples)
        self._wake.set()

    def finalize(self) -> None:
        """Flush: exactly one Final with reason FINALIZE follows, and the stream goes on."""
        self._session.finalize()
        self._wake.set()

    def end(self) -> None:
        """No more audio: the rest is recognised, and Done is the last event."""
        self._session.end()
        self._wake.set()

    def close(self) -> None:
        """Give the slot back, at any moment; a step that is running is finished first and its result dropped."""
        self.closed = True
        self._events.put_nowait(None)
        self._progress.set()
        self._wake.set()

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

    def next_step(self) -> StepInput | None:
        """For the recognizer: the next ready step."""
        return self._session.next_step(self.slot)

    def apply(self, emissions: list[Emission]) -> None:
        """For the recognizer: the result of the step taken last."""
        if self.closed:
            return
        for event in self._session.apply(emissions):
            self._events.put_nowait(event)
        self._progress.set()
        if self._session.done:
            self.close()

    def fail(self, error: EngineError) -> None:
        """For the recognizer: the stream cannot go on."""
        self._events.put_nowait(error)
        self.close()
