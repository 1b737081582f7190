"""The life of the server: loading, warming, ready, draining. One owner for what the health checks report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from enum import StrEnum
from types import TracebackType
from typing import Self

import numpy as np

from parakeet_live.audio.files import read_blocks
from parakeet_live.demo import RECORDING
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.engine.warmup import Capacity
from parakeet_live.settings import Settings
from parakeet_live.web.observer import Observer
from parakeet_live.web.service import StreamService
from parakeet_models.mel import Float32

log = logging.getLogger(__name__)

WARM_UP_SECONDS = 2.0
"""Length of the recording that the server recognises before it takes clients."""


class Phase(StrEnum):
    """What the server is doing. Clients are admitted in READY alone."""

    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


class NotReadyError(Exception):
    """There is no recogniser to talk to, or no new client may; ``phase`` says why."""

    def __init__(self, phase: Phase) -> None:
        super().__init__(f"the server is {phase}")
        self.phase = phase


class Lifecycle:
    """Loads the recogniser beside the running event loop, so that health checks are answered from the first moment.

    Use as ``async with``; :meth:`started` returns when clients are admitted.
    """

    def __init__(self, load: Callable[[], Recognizer], observer: Observer, settings: Settings) -> None:
        """``load`` blocks for as long as the model needs; it is called on a thread."""
        self.phase = Phase.LOADING
        self.capacity: Capacity | None = None
        """Measured by the warm-up."""
        self._load = load
        self._observer = observer
        self._settings = settings
        self._recognizer: Recognizer | None = None
        self._service: StreamService | None = None
        self._stack = AsyncExitStack()
        self._start: asyncio.Task[None] | None = None

    @property
    def recognizer(self) -> Recognizer:
        """The running recogniser. Raises NotReadyError before it runs."""
        if self._recognizer is None:
            raise NotReadyError(self.phase)
        return self._recognizer

    @property
    def service(self) -> StreamService:
        """What serves streams. Raises NotReadyError before it does; while draining it refuses by itself."""
        if self._service is None:
            raise NotReadyError(self.phase)
        return self._service

    @property
    def saturated(self) -> bool:
        """True while a further client would find no free stream."""
        return self._service is not None and self._service.admission.left == 0

    @property
    def status(self) -> str:
        """One word for health checks: the phase, or "saturated"."""
        return "saturated" if self.phase is Phase.READY and self.saturated else self.phase.value

    def stop_admitting(self) -> None:
        """Admit nobody from now on. Safe in a signal handler."""
        self.phase = Phase.DRAINING
        if self._service is not None:
            self._service.draining = True

    async def drain(self) -> None:
        """Admit nobody, and end every session; returns when each client has got its last results."""
        self.stop_admitting()
        if self._service is not None:
            await self._service.drain()

    async def started(self) -> None:
        """Return once clients are admitted. Raises what loading or warming up raised."""
        assert self._start is not None
        await asyncio.shield(self._start)

    async def __aenter__(self) -> Self:
        self._start = asyncio.create_task(self._run_start())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._start is not None
        self.stop_admitting()
        self._start.cancel()
        await asyncio.gather(self._start, return_exceptions=True)
        await self._stack.aclose()
        await asyncio.to_thread(self._observer.shut_down)

    async def _run_start(self) -> None:
        try:
            await self._bring_up()
        except Exception:
            self.phase = Phase.FAILED
            raise

    async def _bring_up(self) -> None:
        recognizer = await asyncio.to_thread(self._load)
        await self._stack.enter_async_context(recognizer)
        if self._settings.warm_up:
            self._enter(Phase.WARMING)
            speech = await asyncio.to_thread(_speech)
            self.capacity = await asyncio.to_thread(recognizer.warm_up, speech)
            await _recognise(recognizer, speech)
        size = self._pool_size(recognizer)
        if self.capacity is not None:
            _report(self.capacity, recognizer, size)
        self._recognizer = recognizer
        service = StreamService(recognizer, self._observer, self._settings, size)
        self._service = await self._stack.enter_async_context(service)
        self._enter(Phase.READY)

    def _pool_size(self, recognizer: Recognizer) -> int:
        """Streams at the same time: as set, else as measured; the backend has room for at least as many."""
        if self._settings.max_streams is not None or self.capacity is None:
            return recognizer.max_streams
        return max(1, min(recognizer.max_streams, self.capacity.streams))

    def _enter(self, phase: Phase) -> None:
        """The next phase, unless the server is already on its way out."""
        if self.phase is not Phase.DRAINING:
            self.phase = phase


def _speech() -> Float32:
    """Some seconds of the demo recording, float32[n] at 16 kHz."""
    return np.concatenate(list(read_blocks(RECORDING)))[: int(WARM_UP_SECONDS * 16_000)]


async def _recognise(recognizer: Recognizer, speech: Float32) -> None:
    """One whole stream, from samples to events."""
    stream = recognizer.open()
    try:
        stream.push(speech)
        stream.end()
        async for _ in stream:
            pass
    finally:
        stream.close()


def _report(capacity: Capacity, recognizer: Recognizer, max_streams: int) -> None:
    log.info(
        "measured: real-time factor %.3f for one live stream, about %d live streams on %d lanes; %d are admitted",
        capacity.real_time_factor,
        capacity.streams,
        recognizer.lanes,
        max_streams,
    )
    if capacity.streams == 0:
        log.warning(
            "this machine is too slow for this model: one second of speech takes %.1f s, so text will fall behind. "
            "Use a smaller model or eight-bit weights, or give it more processor time",
            capacity.real_time_factor,
        )
    elif max_streams > capacity.streams:
        log.warning(
            "max_streams is %d, but this machine carries about %d live streams: set it lower, or streams will lag",
            max_streams,
            capacity.streams,
        )
