"""The asynchronous client."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Unpack

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from parakeet_client import persistence, wire
from parakeet_client.errors import ConnectionLostError, ParakeetError, RefusedError
from parakeet_client.events import Ack, Done, Event, Queued, Ready, Reconnected, Reconnecting
from parakeet_client.journal import Journal
from parakeet_client.options import Options

MAX_KEPT_BYTES = 8 * 1024 * 1024
"""Audio that the server has not acknowledged, in bytes: 4 minutes of 16-bit audio at 16 kHz. Then ``send`` waits."""

Dial = Callable[[str], Awaitable[tuple[ClientConnection, Ready]]]


class Stream:
    """One session, over as many connections as it takes. :func:`connect` makes it."""

    def __init__(self, url: str, dial: Dial, socket: ClientConnection, ready: Ready, reconnect: bool) -> None:
        self.ready = ready
        """What the server said first, on the newest connection: model, format, limits."""
        self._url = url
        self._dial = dial
        self._reconnect_allowed = reconnect
        self._socket: ClientConnection | None = socket
        self._journal = Journal()
        self._configured: str | None = None
        """The last change of settings; a new session needs it again."""
        self._seen = 0
        """Number of the last result that has arrived."""
        self._events: deque[Event] = deque()
        self._error: ParakeetError | None = None
        self._over = False
        """Nothing more will come: done, or failed with the error."""
        self._sending = asyncio.Lock()
        self._news = asyncio.Event()
        """An event, or the end."""
        self._room = asyncio.Event()
        """Audio was acknowledged, or the end."""
        self._keeper = asyncio.create_task(self._keep())

    @property
    def kept_bytes(self) -> int:
        """Audio, in bytes, that would have to be sent again if the connection were lost now."""
        return self._journal.size

    async def send(self, audio: wire.Buffer) -> None:
        """Send audio of any length; it may be cut anywhere.

        Waits while the server takes no more. While there is no connection audio is kept, up to MAX_KEPT_BYTES; then
        this waits for the next connection. Raises ConnectionLostError once the session is over.
        """
        for frame in wire.frames(audio):
            while self._journal.size + len(frame) > MAX_KEPT_BYTES and not self._over:
                self._room.clear()
                await self._room.wait()
            await self._add(bytes(frame))

    async def finalize(self) -> None:
        """Ask for the text of everything sent so far: one :class:`Final` with reason "finalize" follows."""
        await self._add(wire.FINALIZE)

    async def cancel(self) -> None:
        """Drop the current utterance and all audio sent so far; :class:`Cancelled` follows."""
        await self._add(wire.CANCEL)

    async def configure(self, **options: Unpack[Options]) -> None:
        """Change when utterances end, from here on: ``endpointing="dictation"``, ``eou_silence_ms=900`` and so on.

        ``format`` changes how the finals that follow are made readable. :class:`Configured` follows.
        """
        self._configured = wire.configure(options)
        await self._add(self._configured)

    async def end(self) -> None:
        """No more audio: the last finals follow, then :class:`Done`."""
        await self._add(wire.END)

    async def keepalive(self) -> None:
        """Say that you are still there, when you have no audio to send for a while."""
        async with self._sending:
            if self._socket is not None:
                await _try_to_send(self._socket, wire.KEEPALIVE)

    async def receive(self, timeout: float | None = None) -> Event | None:  # noqa: ASYNC109 - no error, None
        """The next event; None after :class:`Done`, or if none comes within ``timeout`` seconds (0: what is here).

        Raises ServerError if the server ends the session, ConnectionLostError if there is no connection any more.
        """
        try:
            async with asyncio.timeout(timeout):
                while not self._events and not self._over:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        if self._events:
            return self._events.popleft()
        if self._error is not None:
            raise self._error
        return None

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """Events as they come, until :class:`Done`. Raises as :meth:`receive` does."""
        while (event := await self.receive()) is not None:
            yield event

    async def aclose(self) -> None:
        """Leave, whatever is still to come."""
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)
        self._finish(wire.lost("it was closed here"))
        if self._socket is not None:
            await self._socket.close()

    # Sending

    async def _add(self, message: bytes | str) -> None:
        if self._over:
            raise self._lost_error()
        self._journal.add(message)
        await self._flush()

    async def _flush(self) -> None:
        """Send what is unsent, if there is a connection. What fails is kept for the next one."""
        async with self._sending:
            while self._socket is not None and (message := self._journal.unsent()) is not None:
                self._journal.advance()
                if not await _try_to_send(self._socket, message):
                    return

    def _lost_error(self) -> ConnectionLostError:
        if isinstance(self._error, ConnectionLostError):
            return self._error
        error = wire.lost(str(self._error) if self._error else "the session is over")
        error.__cause__ = self._error
        return error

    # Receiving

    async def _keep(self) -> None:
        """Receive on one connection after the other, until the session is over."""
        try:
            while self._socket is not None:
                reason, final = await self._receive_all(self._socket)
                if self._over:
                    return
                socket, self._socket = self._socket, None
                await socket.close()
                if final or not self._reconnect_allowed or self.ready.resume_token is None:
                    raise wire.lost(reason)
                self._report(Reconnecting(reason))
                await self._reconnect(reason)
        except ParakeetError as error:
            self._finish(error)
        except Exception as error:
            failure = wire.lost(f"{type(error).__name__}: {error}")
            failure.__cause__ = error
            self._finish(failure)

    async def _receive_all(self, socket: ClientConnection) -> tuple[str, bool]:
        """Events of one connection; returns why it ended, and whether that is for good. Raises ServerError."""
        while True:
            try:
                async with asyncio.timeout(persistence.SILENCE_SECONDS):
                    text = await socket.recv()
            except TimeoutError:
                if self._journal.size > persistence.SILENCE_AUDIO_SECONDS * self._bytes_per_second():
                    socket.transport.abort()
                    return f"nothing was heard for {persistence.SILENCE_SECONDS:g} s", False
                continue
            except ConnectionClosed as error:
                return str(error), persistence.is_final(socket.close_code)
            seq, message = wire.parse_message(text)
            if seq is not None:
                if seq <= self._seen:
                    continue
                self._seen = seq
            if isinstance(message, Ack):
                self._journal.acknowledge(message.audio_bytes, message.controls)
                self._room.set()
            elif message is not None:
                self._report(message)
                if isinstance(message, Done):
                    self._finish(None)
                    return "done", True

    def _bytes_per_second(self) -> int:
        return wire.sample_bytes(self.ready) * self.ready.sample_rate

    def _report(self, event: Event) -> None:
        self._events.append(event)
        self._news.set()

    def _finish(self, error: ParakeetError | None) -> None:
        if not self._over:
            self._over = True
            self._error = error
            self._news.set()
            self._room.set()

    # Reconnecting

    async def _reconnect(self, reason: str) -> None:
        """Another connection for this session, or for a new one. Raises ParakeetError when it is time to give up."""
        deadline = time.monotonic() + persistence.patience(self.ready.resume_window_ms)
        token = self.ready.resume_token
        for pause in persistence.pauses():
            if time.monotonic() + pause > deadline:
                raise wire.lost(f"{reason}; and no other could be made in its place")
            await asyncio.sleep(pause)
            url = self._url if token is None else wire.resume_url(self._url, token, self._seen)
            try:
                socket, ready = await self._dial(url)
            except RefusedError as refusal:
                if refusal.code == "resume_failed":
                    if not self._journal.continuable:
                        raise wire.lost(
                            f"{reason}; its session is gone, and a WAV file has to start anew"
                        ) from None
                    token = None
                elif not persistence.is_passing(refusal):
                    raise
                continue
            async with self._sending:  # nothing is sent on it before it is known what
                self._go_on(socket, ready)
            await self._flush()
            return

    def _go_on(self, socket: ClientConnection, ready: Ready) -> None:
        if ready.resumed:
            self._journal.rewind(ready.audio_bytes, ready.controls)
        else:
            begin = self._journal.restart(wire.sample_bytes(self.ready), self._configured)
            self._seen = 0
        self.ready = ready
        self._socket = socket
        self._report(Reconnected(not ready.resumed, ready.audio_bytes if ready.resumed else begin))
        self._room.set()


async def _try_to_send(socket: ClientConnection, message: bytes | str) -> bool:
    """False if the connection is lost; whoever receives on it says why."""
    try:
        await socket.send(message)
    except ConnectionClosed:
        return False
    return True


@asynccontextmanager
async def connect(
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
) -> AsyncIterator[Stream]:
    """Open a session at ``url``, for example ``ws://127.0.0.1:8765/v1/stream``.

    What is not stated about the audio is 16-bit PCM (``pcm_s16le``), 16000 Hz, one channel, unless the audio
    begins with a WAV header. ``key`` is an API key, where the server wants one. ``on_queued`` is told the place in the
    queue while the server is full. With ``reconnect`` the session goes on over another connection when one is lost;
    :class:`Reconnecting` and :class:`Reconnected` say so.

    ``options`` say when utterances end and how finals are made readable: ``endpointing="telephone_digits"``,
    ``eou_silence_ms=900``, ``format=("numerals", "punctuation")`` and so on, see :class:`Options`.

    Raises RefusedError if the server cannot be reached or does not take the session, TypeError for an option of a
    name or type that no server knows.
    """

    async def dial(url: str) -> tuple[ClientConnection, Ready]:
        return await _dial(url, key, on_queued, open_timeout)

    url = wire.stream_url(url, encoding, sample_rate, channels, options)
    socket, ready = await dial(url)
    stream = Stream(url, dial, socket, ready, reconnect)
    try:
        yield stream
    finally:
        await stream.aclose()


async def _dial(
    url: str, key: str | None, on_queued: Callable[[Queued], None] | None, open_timeout: float
) -> tuple[ClientConnection, Ready]:
    """A connection whose session has begun. Raises RefusedError."""
    try:
        socket = await open_socket(
            url,
            additional_headers={"Authorization": f"Bearer {key}"} if key else None,
            compression=None,
            open_timeout=open_timeout,
            ping_timeout=wire.PING_TIMEOUT_SECONDS,
            max_size=wire.MAX_MESSAGE_BYTES,
            # The keeper reads all the time. Without a limit here a burst of results stops neither it nor pings.
            max_queue=None,
        )
    except InvalidURI as error:
        message = f"{url} is no WebSocket URL; it looks like ws://127.0.0.1:8765/v1/stream"
        raise RefusedError("bad_url", message) from error
    except (OSError, InvalidHandshake, ConnectionClosed) as error:
        raise wire.refused(url, error) from error
    wire.limit_send_buffer(socket.transport)
    try:
        while isinstance(greeting := wire.parse_greeting(await socket.recv()), Queued):
            if on_queued is not None:
                on_queued(greeting)
    except ConnectionClosed as error:
        raise RefusedError("unreachable", f"{url} closed the connection at once: {error}") from error
    except BaseException:
        await socket.close()
        raise
    return socket, greeting
