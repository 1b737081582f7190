"""``WS /v1/stream``: from the handshake to a session, and one connection of that session.

A connection has three tasks: the reader takes from the socket, the feeder hands on to the session, the writer is the
only one that sends. They end together; what becomes of the session then is the registry's to decide.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from http import HTTPStatus

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.responses import Response

from parakeet_live.access.usage import Lease
from parakeet_live.dialects.messages import CloseCode, ErrorCode
from parakeet_live.dialects.native import Refuse, queued, refusal
from parakeet_live.dialects.query import BadParameterError, StreamRequest, parse_query
from parakeet_live.dialects.resume import ResumeClaim, parse_resume
from parakeet_live.engine.backend import CapacityError
from parakeet_live.web.access import AccessControl
from parakeet_live.web.admission import RETRY_AFTER_SECONDS, Standing, Ticket
from parakeet_live.web.inbox import Departure, Inbox
from parakeet_live.web.live_session import LiveSession
from parakeet_live.web.observer import Observer
from parakeet_live.web.outbox import Closing, Outbox
from parakeet_live.web.results import ResultsGoneError
from parakeet_live.web.service import StreamService

log = logging.getLogger(__name__)

FAREWELL_SECONDS = 0.2
"""Time between a failed send and the end of the connection becoming known."""


class ClientGone(Exception):  # noqa: N818 - it is no error when a client leaves
    """The client has left; there is nobody to tell."""


async def serve_stream(websocket: WebSocket, service: StreamService, access: AccessControl) -> None:
    """Serve one connection from the handshake to the close. Raises AccessDeniedError or KeyLimitError before it."""
    try:
        claim, query = parse_resume(websocket.query_params.multi_items())
        request = parse_query(query, service.language)
    except BadParameterError as error:
        await refuse_stream(websocket, ErrorCode.BAD_PARAMETER, str(error), CloseCode.POLICY)
        return
    try:
        if claim:
            await _resume(websocket, service, claim, access.holder(websocket))
        else:
            await _begin(websocket, service, request, access.open_stream(websocket))
    except ClientGone:
        log.info("a client left before its session began")


async def refuse_stream(
    websocket: WebSocket, code: ErrorCode, message: str, close_code: int, retry_after: int | None = None
) -> None:
    """Refuse a connection before its session.

    As a message after the handshake, because a browser shows nothing of a handshake that failed. Where another attempt
    makes sense, other clients and load balancers get HTTP status 503 instead; browsers are known by their Origin.
    """
    log.info("refused, %s: %s", code, message)
    refuse = refusal(code, message, close_code, retry_after)
    try:
        if retry_after is not None and "origin" not in websocket.headers:
            await _deny(websocket, refuse, retry_after)
        else:
            await _accept(websocket)
            await _refuse(websocket, refuse)
    except ClientGone:
        log.info("the client left before it could be told")


async def _begin(websocket: WebSocket, service: StreamService, request: StreamRequest, lease: Lease) -> None:
    address = websocket.client.host if websocket.client else "an unknown address"
    log.info("a client from %s%s", address, f" with the key of {lease.holder!r}" if lease.holder else "")
    with ExitStack() as unless_begun:
        unless_begun.callback(lease.close)
        changed = asyncio.Event()
        ticket = service.arrive(changed.set)
        if ticket is None:
            await refuse_stream(websocket, *_no_room(service))
            return
        unless_begun.callback(service.give_back, ticket)
        await _accept(websocket)
        async with _reading(websocket) as (inbox, reader):
            await _wait_for_turn(websocket, service, ticket, changed, reader)
            if ticket.standing is not Standing.ADMITTED:
                if not reader.done():
                    await _refuse(websocket, refusal(*_no_room(service)))
                return
            try:
                session = service.begin(request, ticket, lease)
            except CapacityError:
                await _refuse(websocket, refusal(*_no_room(service)))
                return
            unless_begun.pop_all()
            await _attend(websocket, service, session, session.attach(None), inbox, reader)


async def _wait_for_turn(
    websocket: WebSocket,
    service: StreamService,
    ticket: Ticket,
    changed: asyncio.Event,
    reader: asyncio.Task[Departure],
) -> None:
    """Return when the ticket is admitted, its time is up, the queue is closed, or the client has left."""
    admission, told = service.admission, 0
    deadline = time.monotonic() + service.settings.max_wait_s
    while ticket.standing is Standing.WAITING and not reader.done():
        now = time.monotonic()
        position = admission.position(ticket)
        changed.clear()
        waiting = asyncio.create_task(changed.wait())
        try:
            async with asyncio.timeout(max(0.0, deadline - now)):
                if position != told:
                    wait = admission.estimated_wait(position, now)
                    await _send(websocket, queued(position, wait, deadline - now))
                    told = position
                await asyncio.wait((waiting, reader), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            return
        finally:
            waiting.cancel()


def _no_room(service: StreamService) -> tuple[ErrorCode, str, int, int]:
    """Code, message, close code and seconds of the refusal of a client for which there is no stream."""
    if service.draining:
        message = "the server is stopping; connect again, to another one or when it is back"
        return ErrorCode.DRAINING, message, CloseCode.SERVICE_RESTART, RETRY_AFTER_SECONDS
    retry_after = service.admission.retry_after(time.monotonic())
    message = (
        f"every stream of this server ({service.admission.size}) is in use; try again in {retry_after} s"
    )
    if service.admission.held:
        message = f"the server is overloaded and takes no new streams; try again in {retry_after} s"
    return ErrorCode.SERVER_FULL, message, CloseCode.TRY_AGAIN_LATER, retry_after


async def _resume(websocket: WebSocket, service: StreamService, claim: ResumeClaim, holder: str) -> None:
    await _accept(websocket)
    async with _reading(websocket) as (inbox, reader):
        session = service.sessions.find(claim.token, holder)
        try:
            outbox = session.attach(claim.seen) if session else None
        except ResultsGoneError:
            outbox = None
        if session is None or outbox is None:
            message = (
                "there is no such session any more, or results that you have not seen are no longer kept; open a new "
                "one and send from the last audio that you have text for"
            )
            log.info(
                "refused, %s: %s", ErrorCode.RESUME_FAILED, "unknown token" if session is None else session.id
            )
            await _refuse(websocket, refusal(ErrorCode.RESUME_FAILED, message, CloseCode.POLICY))
            return
        log.info("session %s: resumed", session.id)
        await _attend(websocket, service, session, outbox, inbox, reader)


@asynccontextmanager
async def _reading(websocket: WebSocket) -> AsyncIterator[tuple[Inbox, asyncio.Task[Departure]]]:
    """The socket is read for as long as this lasts; the task ends when the client has gone."""
    inbox = Inbox(websocket)
    reader = asyncio.create_task(inbox.fill())
    try:
        yield inbox, reader
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


async def _attend(
    websocket: WebSocket,
    service: StreamService,
    session: LiveSession,
    outbox: Outbox,
    inbox: Inbox,
    reader: asyncio.Task[Departure],
) -> None:
    """One connection of a session, until it ends."""
    feeder = asyncio.create_task(_feed(session, outbox, inbox))
    writer = asyncio.create_task(_write(websocket, outbox))
    deadline = asyncio.create_task(_deadline(outbox, service.settings.close_timeout_s))
    how: Closing | Departure | None = None
    try:
        # The feeder never ends by itself.
        await asyncio.wait((reader, writer, deadline), return_when=asyncio.FIRST_COMPLETED)
        if writer.done() and (how := writer.result()) is None:
            # The writer has found the socket closed; why, the reader is about to hear.
            await asyncio.wait((reader,), timeout=FAREWELL_SECONDS)
            how = Departure(CloseCode.ABNORMAL)
        # After our own closing the reader ends too, but that is not its news.
        if reader.done() and not isinstance(how, Closing):
            how = reader.result()
    finally:
        for task in (feeder, writer, deadline):
            task.cancel()
        await asyncio.gather(feeder, writer, deadline, return_exceptions=True)
        service.sessions.connection_ended(session, outbox, how)


async def _feed(session: LiveSession, outbox: Outbox, inbox: Inbox) -> None:
    """Inbox to session. A fault of ours is logged, told to the client, and ends this session only."""
    try:
        while True:
            await session.receive(outbox, await inbox.take())
    except Exception:
        session.fail_internally()


async def _deadline(outbox: Outbox, seconds: float) -> None:
    """Ends when a client has not taken the last messages in time."""
    await outbox.wait_closed()
    await asyncio.sleep(seconds)


async def _write(websocket: WebSocket, outbox: Outbox) -> Closing | None:
    """Outbox to socket; returns the closing once it is sent, None if the client has gone."""
    try:
        while not isinstance(item := await outbox.get(), Closing):
            await _send(websocket, item)
        await _close(websocket, item)
    except ClientGone:
        return None
    return item


# The socket. Starlette and uvicorn say RuntimeError when the server's side has closed already, for instance because of
# a message over the size limit.


async def _accept(websocket: WebSocket) -> None:
    try:
        await websocket.accept()
    except (WebSocketDisconnect, RuntimeError) as gone:
        raise ClientGone from gone


def _count(websocket: WebSocket, refuse: Refuse) -> None:
    observer: Observer = websocket.app.state.observer
    observer.refused[refuse.reason] += 1


async def _deny(websocket: WebSocket, refuse: Refuse, retry_after: int) -> None:
    _count(websocket, refuse)
    headers = {"Retry-After": str(retry_after), "Content-Type": "application/json"}
    try:
        await websocket.send_denial_response(Response(refuse.text, HTTPStatus.SERVICE_UNAVAILABLE, headers))
    except (WebSocketDisconnect, RuntimeError) as gone:
        raise ClientGone from gone


async def _refuse(websocket: WebSocket, refuse: Refuse) -> None:
    _count(websocket, refuse)
    await _send(websocket, refuse.text)
    await _close(websocket, Closing(refuse.close_code, refuse.reason))


async def _send(websocket: WebSocket, text: str) -> None:
    try:
        await websocket.send_text(text)
    except (WebSocketDisconnect, RuntimeError) as gone:
        raise ClientGone from gone


async def _close(websocket: WebSocket, closing: Closing) -> None:
    try:
        await websocket.close(closing.code, closing.reason)
    except (WebSocketDisconnect, RuntimeError) as gone:
        raise ClientGone from gone
