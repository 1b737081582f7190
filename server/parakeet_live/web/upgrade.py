"""The server's side of a connection below the application: the handshake, liveness, and the end of the socket."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from parakeet_live.dialects.messages import CloseCode

LINGER_SECONDS = 10.0
"""After the application is through with a connection, its last bytes have this long to go out."""
EARLY_BYTES = 64 * 1024
"""Beyond it, and what one reading of the socket brings, nothing is read until the handshake is answered."""
SMALL_BYTES = 4096
"""Binary messages up to this size that come together are handed on as one."""
QUICK_SECONDS = 0.015
QUICK_READS = 4
"""So many small readings in a row, each no later than this after the socket was read again, are a client that sends
hundreds of messages a second."""
GATHER_SECONDS = 0.02
"""Its socket is read so often, as if it sent messages of this length."""


class UpgradeProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, without the loss of early messages.

    A client should wait for the server's answer before its first message (RFC 6455, section 4.1). One that does
    not may have its first words in the same TCP segment as the request, and uvicorn would drop them.
    """

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        early, _ = self.conn.trailing_data
        super().handle_websocket_upgrade(event)
        if early:
            cast(WebSocketsSansIOProtocol, self.transport.get_protocol()).data_received(early)


class StreamProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, with these differences.

    Whatever a client sends proves that it lives, not only the answer to a ping, and while its data is held back it need
    prove nothing: a pong waits behind the audio. A connection that ends without a close frame is reported as such (code
    1006), as is one whose client answers no ping. A client that takes nothing cannot keep a socket open. And frames
    that break the protocol end the connection with the right code and without a traceback, whenever they come.

    Hundreds of tiny messages a second cost little more than a few large ones: they are gathered for GATHER_SECONDS and
    handed on as one. One that begins with a brace stays by itself, because it may be a text message sent as the wrong
    kind of frame.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._heard_at = 0.0
        self._early = b""
        """What came before the handshake was answered."""
        self._linger: asyncio.TimerHandle | None = None
        self._small: list[bytes] = []
        """Complete small messages that are not handed on yet; never any between two readings."""
        self._reading_since = 0.0
        """When reading was last resumed."""
        self._quick_reads = 0
        self._gathering: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        if self.handshake_initiated and not self.handshake_complete:
            # The parser may answer a frame (a ping, a close, a broken one), which it cannot before the handshake is.
            self._early += data
            if len(self._early) > EARLY_BYTES:
                self.transport.pause_reading()
            return
        quick = len(data) <= SMALL_BYTES and self._heard_at - self._reading_since < QUICK_SECONDS
        self._quick_reads = self._quick_reads + 1 if quick else 0
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        self._hand_on()

    def _hand_on(self) -> None:
        """The small messages gathered so far, as one."""
        if self._small:
            # A fragmented message may have begun.
            unfinished = self.frames, self.curr_msg_data_type
            self.frames, self.curr_msg_data_type = self._small, "bytes"
            self._small = []
            super().send_receive_event_to_app()
            self.frames, self.curr_msg_data_type = unfinished

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "bytes" and len(self.frames) == 1:
            message = self.frames[0]
            if len(message) <= SMALL_BYTES and message[:1] != b"{":
                self.frames = []
                self._small.append(message)
                return
        self._hand_on()
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                # uvicorn would log a traceback, and fail if the client's close frame came in the same segment.
                self.frames = []
                self.conn.fail(CloseCode.INVALID_TEXT, "text messages must be UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    async def receive(self) -> ASGIReceiveEvent:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty() and self._gathering is None:
            wait = self._heard_at + GATHER_SECONDS - self.loop.time()
            if self._quick_reads >= QUICK_READS and wait > 0:
                self._gathering = self.loop.call_later(wait, self._read_on)
            else:
                self._read_on()
        return message

    def _read_on(self) -> None:
        self._gathering = None
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._reading_since = self.loop.time()
            self.transport.resume_reading()

    def handle_close(self, event: Frame) -> None:
        self._hand_on()
        super().handle_close(event)

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:
            self.transport.close()  # senseless bytes after the client's close frame: nothing is left to say
        else:
            super().handle_parser_exception()

    def keepalive_timeout(self) -> None:
        if self.read_paused or self._heard_at > self.ping_sent_at:
            self.pong_timer = None
            self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        # Its close frame cannot arrive either: nobody is waited for.
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        # Before uvicorn reports the end with code 1005, which is that of a close frame without a code.
        self.queue.put_nowait({"type": "websocket.disconnect", "code": CloseCode.ABNORMAL, "reason": ""})
        if self._linger is not None:
            self._linger.cancel()
        if self._gathering is not None:
            self._gathering.cancel()
        super().connection_lost(exc)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept" and self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self._parse(early)
        if message["type"] == "websocket.http.response.body":
            # A refusal completes the handshake too; uvicorn notices only when the socket is closed.
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            if not self.disconnected:
                self._linger = self.loop.call_later(LINGER_SECONDS, self.transport.abort)
