"""The blocking client: the same session without ``async``, for scripts and threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import websockets.sync.client as sync_client
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from parakeet_client import wire
from parakeet_client.events import Done, Event, Queued, Ready


class SyncStream:
    """One session. :func:`connect_sync` makes it. One thread may send while another iterates."""

    def __init__(self, socket: sync_client.ClientConnection, ready: Ready) -> None:
        self._socket = socket
        self._done = False
        self.ready = ready
        """What the server said first: model, format, limits."""

    def send(self, audio: wire.Buffer) -> None:
        """Send audio of any length; it may be cut anywhere. Blocks while the server takes no more."""
        for frame in wire.frames(audio):
            self._send(frame)

    def finalize(self) -> None:
        """Ask for the text of everything sent so far: one :class:`Final` with reason "finalize" follows."""
        self._send(wire.FINALIZE)

    def cancel(self) -> None:
        """Drop the current utterance and all audio sent so far; :class:`Cancelled` follows."""
        self._send(wire.CANCEL)

    def configure(self, **options: str | int | bool) -> None:
        """Change when utterances end, from here on: ``endpointing="dictation"``, ``eou_silence_ms=900`` and so on.

        The names are in the protocol under "Connect". :class:`Configured` follows.
        """
        self._send(wire.configure(options))

    def end(self) -> None:
        """No more audio: the last finals follow, then :class:`Done`."""
        self._send(wire.END)

    def keepalive(self) -> None:
        """Say that you are still there, when you have no audio to send for a while."""
        self._send(wire.KEEPALIVE)

    def receive(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes within ``timeout`` seconds (0: only what is already here).

        Raises ServerError if the server ends the session, ConnectionLostError if the connection breaks.
        """
        while not self._done:
            try:
                text = self._socket.recv(timeout)
            except TimeoutError:
                return None
            except ConnectionClosed as error:
                raise wire.lost(error) from error
            event = wire.parse_event(text)
            if event is not None:
                self._done = isinstance(event, Done)
                return event
        return None

    def __iter__(self) -> Iterator[Event]:
        """Events as they come, until :class:`Done`. Raises as :meth:`receive` does."""
        while (event := self.receive()) is not None:
            yield event

    def _send(self, message: str | memoryview) -> None:
        try:
            self._socket.send(message)
        except ConnectionClosed as error:
            raise wire.lost(error) from error


@contextmanager
def connect_sync(
    url: str,
    *,
    encoding: str | None = None,
    sample_rate: int | None = None,
    channels: int | None = None,
    open_timeout: float = 10.0,
) -> Iterator[SyncStream]:
    """Open a session; the arguments and errors are those of :func:`parakeet_client.connect`."""
    url = wire.stream_url(url, encoding, sample_rate, channels)
    with ExitStack() as stack:
        try:
            socket = stack.enter_context(
                sync_client.connect(
                    url,
                    compression=None,
                    open_timeout=open_timeout,
                    ping_timeout=wire.PING_TIMEOUT_SECONDS,
                    max_size=wire.MAX_MESSAGE_BYTES,
                    max_queue=None,  # as in parakeet_client.stream
                )
            )
        except (OSError, InvalidHandshake) as error:
            raise wire.refused(url, error) from error
        try:
            while isinstance(greeting := wire.parse_greeting(socket.recv()), Queued):
                pass
        except ConnectionClosed as error:
            raise wire.lost(error) from error
        yield SyncStream(socket, greeting)
