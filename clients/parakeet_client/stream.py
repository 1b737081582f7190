"""The asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import websockets.asyncio.client as asyncio_client
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from parakeet_client import wire
from parakeet_client.events import Done, Event, Queued, Ready


class Stream:
    """One session. :func:`connect` makes it."""

    def __init__(self, socket: asyncio_client.ClientConnection, ready: Ready) -> None:
        self._socket = socket
        self._done = False
        self.ready = ready
        """What the server said first: model, format, limits."""

    async def send(self, audio: wire.Buffer) -> None:
        """Send audio of any length; it may be cut anywhere. Waits while the server takes no more."""
        for frame in wire.frames(audio):
            await self._send(frame)

    async def finalize(self) -> None:
        """Ask for the text of everything sent so far: one :class:`Final` with reason "finalize" follows."""
        await self._send(wire.FINALIZE)

    async def cancel(self) -> None:
        """Drop the current utterance and all audio sent so far; :class:`Cancelled` follows."""
        await self._send(wire.CANCEL)

    async def configure(self, **options: str | int | bool) -> None:
        """Change when utterances end, from here on: ``endpointing="dictation"``, ``eou_silence_ms=900`` and so on.

        The names are in the protocol under "Connect". :class:`Configured` follows.
        """
        await self._send(wire.configure(options))

    async def end(self) -> None:
        """No more audio: the last finals follow, then :class:`Done`."""
        await self._send(wire.END)

    async def keepalive(self) -> None:
        """Say that you are still there, when you have no audio to send for a while."""
        await self._send(wire.KEEPALIVE)

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """Events as they come, until :class:`Done`.

        Raises ServerError if the server ends the session, ConnectionLostError if the connection breaks.
        """
        while not self._done:
            try:
                text = await self._socket.recv()
            except ConnectionClosed as error:
                raise wire.lost(error) from error
            event = wire.parse_event(text)
            if event is not None:
                self._done = isinstance(event, Done)
                yield event

    async def _send(self, message: str | memoryview) -> None:
        try:
            await self._socket.send(message)
        except ConnectionClosed as error:
            raise wire.lost(error) from error


@asynccontextmanager
async def connect(
    url: str,
    *,
    encoding: str | None = None,
    sample_rate: int | None = None,
    channels: int | None = None,
    open_timeout: float = 10.0,
) -> AsyncIterator[Stream]:
    """Open a session at ``url``, for example ``ws://127.0.0.1:8765/v1/stream``.

    What is not stated about the audio is 16-bit PCM (``pcm_s16le``), 16000 Hz, one channel, unless the audio
    begins with a WAV header. Raises RefusedError if the server cannot be reached or does not take the session.
    """
    url = wire.stream_url(url, encoding, sample_rate, channels)
    async with AsyncExitStack() as stack:
        try:
            socket = await stack.enter_async_context(
                asyncio_client.connect(
                    url,
                    compression=None,
                    open_timeout=open_timeout,
                    ping_timeout=wire.PING_TIMEOUT_SECONDS,
                    max_size=wire.MAX_MESSAGE_BYTES,
                    # Results are kept until you ask for them: a program that first sends everything and then
                    # reads must not stop reading the socket, or pings stay unanswered.
                    max_queue=None,
                )
            )
        except (OSError, InvalidHandshake) as error:
            raise wire.refused(url, error) from error
        try:
            while isinstance(greeting := wire.parse_greeting(await socket.recv()), Queued):
                pass
        except ConnectionClosed as error:
            raise wire.lost(error) from error
        yield Stream(socket, greeting)
