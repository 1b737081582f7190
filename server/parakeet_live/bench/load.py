"""The load generator: many real WebSockets in one event loop, each sending on its own beat.

The load is open: frames go out at fixed times, whether or not the server keeps up, so a slow server cannot slow down
its own measurement. The hot path only notes times; everything is parsed afterwards.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.protocol import State

from parakeet_live.bench.probe import Probe
from parakeet_live.bench.tracks import END, Track

OPENING_AT_ONCE = 16
"""Handshakes at the same time; more would overflow the queue of a listening socket."""
OPEN_TIMEOUT = 20.0
"""Seconds that a handshake may take."""
DRAIN_SECONDS = 30.0
"""Time for the last results after the last audio; a server that needs longer has failed."""


@dataclass(slots=True)
class StreamLog:
    """What happened on one stream; times are those of the monotonic clock, in seconds."""

    track: int
    """Number of the track it plays."""
    frame_ms: int
    start: float = 0.0
    """When its first frame was due."""
    sent: list[float] = field(default_factory=list)
    """When each frame went out."""
    received: list[tuple[float, str]] = field(default_factory=list)
    """Arrival and text of each message."""
    problem: str = ""
    """Why it did not get to its end, if it did not."""

    def due(self, frame: int) -> float:
        """When a frame should go out: counted from the start, so that delays never add up."""
        return self.start + frame * self.frame_ms / 1000


class LoadStream:
    """One connection that plays one track."""

    def __init__(self, number: int, track: Track) -> None:
        self.log = StreamLog(number, track.frame_ms)
        self._track = track
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    async def open(self, server: Probe) -> None:
        """Connect; failure is noted in the log."""
        try:
            self._socket = await connect(
                server.url,
                additional_headers=server.headers,
                compression=None,
                open_timeout=OPEN_TIMEOUT,
                max_queue=None,
            )
        except (OSError, InvalidHandshake) as error:
            self.log.problem = f"no connection: {error}"
            return
        self._reader = asyncio.create_task(self._read(self._socket))

    def send_next(self) -> bool:
        """Send the next frame, and the end message with the last; False if nothing is left to send."""
        if self._socket is None or self._socket.state is not State.OPEN:
            return False
        frames, at = self._track.frames, len(self.log.sent)
        last = at + 1 == len(frames)
        # Around the connection's own send(), which would mask and copy the frame again for every stream.
        self._socket.transport.write(frames[at] + END if last else frames[at])
        self.log.sent.append(time.monotonic())
        return not last

    async def finish(self) -> None:
        """Wait for the server to close, within DRAIN_SECONDS."""
        if self._socket is None or self._reader is None:
            return
        try:
            await asyncio.wait_for(self._reader, DRAIN_SECONDS)
        except TimeoutError:
            self.log.problem = f"not finished {DRAIN_SECONDS:.0f} s after the last audio"
            self._socket.transport.abort()

    async def _read(self, socket: ClientConnection) -> None:
        received = self.log.received
        try:
            async for message in socket:
                received.append((time.monotonic(), str(message)))
        except ConnectionClosed:
            self.log.problem = f"closed with {socket.close_code} {socket.close_reason}".rstrip()


async def open_streams(server: Probe, tracks: Sequence[Track], count: int) -> list[LoadStream]:
    """``count`` connected streams, the tracks dealt out in turn."""
    streams = [LoadStream(n % len(tracks), tracks[n % len(tracks)]) for n in range(count)]
    door = asyncio.Semaphore(OPENING_AT_ONCE)

    async def enter(stream: LoadStream) -> None:
        async with door:
            await stream.open(server)

    await asyncio.gather(*map(enter, streams))
    return streams


async def play(streams: Sequence[LoadStream], starts: Sequence[float]) -> None:
    """Send every stream's frames on time, beginning at ``starts`` (monotonic clock), until the last is out."""
    for stream, start in zip(streams, starts, strict=True):
        stream.log.start = start
    # One timer for all: the earliest frame that is due, whosever it is.
    queue = [(start, number) for number, start in enumerate(starts)]
    heapq.heapify(queue)
    while queue:
        due, number = queue[0]
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        stream = streams[number]
        if stream.send_next():
            heapq.heapreplace(queue, (stream.log.due(len(stream.log.sent)), number))
        else:
            heapq.heappop(queue)


async def play_alone(server: Probe, track: Track, number: int) -> StreamLog:
    """Stream one track as fast as the server takes it, and wait for its end."""
    stream = LoadStream(number, track)
    await stream.open(server)
    for _ in track.frames:
        stream.send_next()
        await asyncio.sleep(0)  # results are read meanwhile
    await stream.finish()
    return stream.log
