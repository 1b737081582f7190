"""The blocking client: the same session without ``async``, for scripts and threads.

It is the asynchronous client on an event loop in a thread, so that both behave alike.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack

from parakeet_client import wire
from parakeet_client.events import Event, Queued, Ready
from parakeet_client.options import Options
from parakeet_client.stream import Stream, connect

T = TypeVar("T")


class _LoopThread:
    """An event loop in a thread of its own, for one session."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="parakeet-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there, and wait for its result."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C while waiting; without effect if it was its own exception
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncStream:
    """One session. :func:`connect_sync` makes it. One thread may send while another iterates."""

    def __init__(self, thread: _LoopThread, stream: Stream) -> None:
        self._thread = thread
        self._stream = stream

    @property
    def ready(self) -> Ready:
        """What the server said first, on the newest connection: model, format, limits."""
        return self._stream.ready

    def send(self, audio: wire.Buffer) -> None:
        """Send audio of any length; it may be cut anywhere. Blocks as :meth:`Stream.send` waits."""
        self._thread.run(self._stream.send(audio))

    def finalize(self) -> None:
        """Ask for the text of everything sent so far: one :class:`Final` with reason "finalize" follows."""
        self._thread.run(self._stream.finalize())

    def cancel(self) -> None:
        """Drop the current utterance and all audio sent so far; :class:`Cancelled` follows."""
        self._thread.run(self._stream.cancel())

    def configure(self, **options: Unpack[Options]) -> None:
        """Change when utterances end and how finals are made readable; see :meth:`Stream.configure`."""
        self._thread.run(self._stream.configure(**options))

    def end(self) -> None:
        """No more audio: the last finals follow, then :class:`Done`."""
        self._thread.run(self._stream.end())

    def keepalive(self) -> None:
        """Say that you are still there, when you have no audio to send for a while."""
        self._thread.run(self._stream.keepalive())

    def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None after :class:`Done`, or if none comes within ``timeout`` seconds (0: what is here).

        Raises ServerError if the server ends the session, ConnectionLostError if there is no connection any more.
        """
        return self._thread.run(self._stream.receive(timeout))

    def __iter__(self) -> Iterator[Event]:
        """Events as they come, until :class:`Done`. Raises as :meth:`receive` does."""
        while (event := self.receive()) is not None:
            yield event


@contextmanager
def connect_sync(
    url: str,
    *,
    encoding: str | None = None,
    sample_rate: int | None = None,
    channels: int | None = None,
    key: str | None = None,
    reconnect: bool = True,
    on_queued: Callable[[Queued], None] | None = None,
    open_timeout: float = 10.0,
    **options: Unpack[Options],
) -> Iterator[SyncStream]:
    """Open a session; the arguments and errors are those of :func:`parakeet_client.connect`."""
    thread = _LoopThread()
    session = connect(
        url,
        encoding=encoding,
        sample_rate=sample_rate,
        channels=channels,
        key=key,
        reconnect=reconnect,
        on_queued=on_queued,
        open_timeout=open_timeout,
        **options,
    )
    try:
        stream = thread.run(session.__aenter__())
        try:
            yield SyncStream(thread, stream)
        finally:
            thread.run(session.__aexit__(None, None, None))
    finally:
        thread.close()
