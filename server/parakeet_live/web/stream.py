"""``WS /v1/stream``: connects one socket, one native session and one stream of the recogniser.

Three tasks: the reader takes from the socket, the pump takes from the recogniser, the writer is the only one
that sends. They end together: when the client has gone, or when the writer has sent the closing.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from parakeet_live.dialects.messages import CloseCode, ErrorCode
from parakeet_live.dialects.native import (
    Action,
    Audio,
    Cancel,
    Configure,
    End,
    Finalize,
    NativeSession,
    Refuse,
    Result,
    ServerInfo,
    refusal,
)
from parakeet_live.dialects.query import BadParameterError, parse_query
from parakeet_live.engine.backend import CapacityError, EngineError
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.engine.stream import Stream
from parakeet_live.session.events import Final, Reason
from parakeet_live.settings import Settings
from parakeet_live.web.outbox import Closing, Outbox

log = logging.getLogger(__name__)

SLICE_BYTES = 64 * 1024
"""A large message is decoded in slices of this size, with a turn for everyone else between two of them. Decoding
and resampling one takes at most 7 ms (measured: mu-law at 8 kHz, 8 s of audio), so it stays on the loop."""
MAX_UNANSWERED_FINALIZES = 16
"""Beyond it the socket is not read until an answer has come: each costs up to 1.28 s of silence to recognise."""


class ClientGone(Exception):  # noqa: N818 - it is no error when a client leaves
    """The client has left; there is nobody to tell."""


async def serve_stream(websocket: WebSocket, recognizer: Recognizer, settings: Settings) -> None:
    """Serve one connection from the handshake to the close."""
    try:
        request = parse_query(websocket.query_params.multi_items())
        stream = recognizer.open(request.endpointing)
    except BadParameterError as error:
        await refuse_stream(websocket, ErrorCode.BAD_PARAMETER, str(error), CloseCode.POLICY)
        return
    except CapacityError:
        message = f"all {recognizer.max_streams} streams of this server are in use; try again later"
        await refuse_stream(websocket, ErrorCode.SERVER_FULL, message, CloseCode.TRY_AGAIN_LATER)
        return
    with closing(stream):
        await websocket.accept()
        session_id = secrets.token_hex(8)
        log.info("session %s: opened, %s", session_id, request.audio.resolve())
        info = ServerInfo(recognizer.bundle_name, recognizer.languages, recognizer.step_ms, settings.limits)
        session = NativeSession(session_id, request, info)
        outcome = await _Connection(websocket, session, stream, settings).run()
        log.info("session %s: %s", session_id, outcome)


async def refuse_stream(websocket: WebSocket, code: ErrorCode, message: str, close_code: int) -> None:
    """Refuse a connection after the handshake, as a message: a browser shows nothing of a failed handshake."""
    log.info("refused, %s: %s", code, message)
    refuse = refusal(code, message, close_code)
    await websocket.accept()
    try:
        await _send(websocket, refuse.text)
        await _close(websocket, Closing(refuse.close_code, refuse.reason))
    except ClientGone:
        log.info("the client left before it could be told")


class _Connection:
    """The three tasks of an accepted connection."""

    def __init__(
        self, websocket: WebSocket, session: NativeSession, stream: Stream, settings: Settings
    ) -> None:
        self._websocket = websocket
        self._session = session
        self._stream = stream
        self._settings = settings
        self._outbox = Outbox(settings.max_unsent_messages)
        self._finalizes = asyncio.Semaphore(MAX_UNANSWERED_FINALIZES)
        self._ending = "the client did not take the last messages in time"

    async def run(self) -> str:
        """Returns how the connection ended, for the log."""
        self._outbox.put(self._session.ready())
        reader = asyncio.create_task(self._guard(self._read()))
        pump = asyncio.create_task(self._guard(self._pump()))
        writer = asyncio.create_task(self._write())
        deadline = asyncio.create_task(self._deadline())
        try:
            # The pump alone never ends a connection: it closes the outbox, and the writer sees that.
            await asyncio.wait((reader, writer, deadline), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reader, pump, writer, deadline):
                task.cancel()
            results = await asyncio.gather(writer, reader, pump, deadline, return_exceptions=True)
        closed = results[0]
        if isinstance(closed, Closing):
            return f"closed with {closed.code} {closed.reason}".rstrip()
        if isinstance(closed, Exception) and not isinstance(closed, ClientGone):
            raise closed
        return self._ending

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the reader or the pump; a fault of ours is logged, told to the client, and ends this session only."""
        try:
            await work
        except Exception:
            log.exception("a session failed")
            message = "the server failed on this session; open a new connection"
            self._refuse(refusal(ErrorCode.INTERNAL_ERROR, message, CloseCode.INTERNAL_ERROR))
            await asyncio.sleep(
                self._settings.close_timeout_s
            )  # until the writer has closed, which cancels this task

    async def _deadline(self) -> None:
        """Ends when a client has not taken the last messages in time."""
        await self._outbox.wait_closed()
        await asyncio.sleep(self._settings.close_timeout_s)

    async def _read(self) -> None:
        """Socket to session. Goes on after ``end`` and after a refusal, so that the client's close is seen."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._ending = f"disconnected, {message['code']} {message.get('reason') or ''}".rstrip()
                return
            if self._outbox.closed:
                continue
            text = message.get("text")
            if text is not None:
                await self._apply(self._session.receive_text(text))
                continue
            data = message["bytes"]
            for start in range(0, len(data), SLICE_BYTES):
                await self._apply(self._session.receive_bytes(data[start : start + SLICE_BYTES]))
                if acknowledgement := self._session.acknowledgement():
                    self._outbox.put(acknowledgement)
                await self._stream.wait_below(self._settings.max_backlog_ms)
                if self._outbox.closed:
                    break
                await asyncio.sleep(0)

    async def _apply(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Audio(samples):
                    self._stream.push(samples)
                case Finalize():
                    await self._finalizes.acquire()
                    self._stream.finalize()
                case Cancel():
                    self._stream.cancel()
                case Configure(endpointing):
                    self._stream.configure(endpointing)
                case End():
                    self._stream.end()
                case Result(text=text):
                    self._outbox.put(text)
                case Refuse():
                    self._refuse(action)

    def _refuse(self, refuse: Refuse) -> None:
        self._outbox.put(refuse.text)
        self._outbox.close(Closing(refuse.close_code, refuse.reason))

    async def _pump(self) -> None:
        """Recogniser to outbox, without ever waiting for the client."""
        try:
            async for event in self._stream:
                result = self._session.event(event)
                self._outbox.put(result.text, replaceable=result.replaceable)
                if isinstance(event, Final) and event.reason is Reason.FINALIZE:
                    self._finalizes.release()
                if self._outbox.overfull:
                    message = f"over {self._settings.max_unsent_messages} results are waiting to be read"
                    self._refuse(refusal(ErrorCode.SLOW_READER, message, CloseCode.POLICY))
                    return
        except EngineError as error:
            log.error("engine failure: %s", error)
            message = "the recogniser failed; open a new connection and send the audio again"
            self._refuse(refusal(ErrorCode.ENGINE_FAILED, message, CloseCode.INTERNAL_ERROR))
        else:
            self._outbox.close(Closing(CloseCode.NORMAL))

    async def _write(self) -> Closing:
        """Outbox to socket; returns what the connection was closed with."""
        while True:
            item = await self._outbox.get()
            if isinstance(item, Closing):
                await _close(self._websocket, item)
                return item
            await _send(self._websocket, item)


async def _send(websocket: WebSocket, text: str) -> None:
    try:
        await websocket.send_text(text)
    except (WebSocketDisconnect, RuntimeError) as gone:
        # Starlette and uvicorn say RuntimeError when the server side has closed already, for instance because
        # of a message over the size limit.
        raise ClientGone from gone


async def _close(websocket: WebSocket, closing: Closing) -> None:
    try:
        await websocket.close(closing.code, closing.reason)
    except (WebSocketDisconnect, RuntimeError) as gone:
        raise ClientGone from gone
