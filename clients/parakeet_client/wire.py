"""What the asynchronous and the blocking client share: URLs, frames, and the meaning of what arrives."""

from __future__ import annotations

import json
import socket
from asyncio import BaseTransport
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from websockets.exceptions import InvalidStatus

from parakeet_client.errors import ConnectionLostError, RefusedError, ServerError
from parakeet_client.events import Ack, Error, Event, Queued, Ready, parse, understand
from parakeet_client.options import as_fields, as_query

FINALIZE = '{"type":"finalize"}'
CANCEL = '{"type":"cancel"}'
END = '{"type":"end"}'
KEEPALIVE = '{"type":"keepalive"}'

SAMPLE_WIDTHS = {"pcm_s16le": 2, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}

FRAME_BYTES = 256 * 1024
"""Larger blocks of audio are cut, so that no limit of a server or proxy on the size of a message matters."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
PING_TIMEOUT_SECONDS = 120.0
"""While audio is sent faster than it is recognised the server reads slowly, and so answers pings late."""
SEND_BUFFER_BYTES = 256 * 1024
"""Audio that the kernel takes from us before it is sent. Left to itself it takes megabytes, which are minutes of audio,
and pings wait behind them."""

Buffer = bytes | bytearray | memoryview


def stream_url(
    url: str,
    encoding: str | None,
    sample_rate: int | None,
    channels: int | None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """``url`` with the stated format and ``options`` added to its query; None states nothing."""
    audio = {"encoding": encoding, "sample_rate": sample_rate, "channels": channels}
    stated = {name: value for name, value in audio.items() if value is not None}
    query = urlencode({**stated, **as_query(options)}, safe=",")
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, query)))))


def limit_send_buffer(transport: BaseTransport) -> None:
    """See SEND_BUFFER_BYTES."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


def configure(options: Mapping[str, Any]) -> str:
    """The message that changes when utterances end, and how finals are made readable."""
    return json.dumps({"type": "configure", **as_fields(options)})


def frames(audio: Buffer) -> Iterator[memoryview]:
    """Pieces of at most FRAME_BYTES, without copying."""
    view = memoryview(audio).cast("B")
    for start in range(0, len(view), FRAME_BYTES):
        yield view[start : start + FRAME_BYTES]


def resume_url(url: str, token: str, seen: int) -> str:
    """``url`` for another connection of a session of which everything up to message ``seen`` has arrived."""
    parts = urlsplit(url)
    query = urlencode({"resume": token, "seen": seen})
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, query)))))


def parse_greeting(text: str | bytes) -> Ready | Queued:
    """A message before the session has begun. Raises RefusedError if it is a refusal."""
    message = parse(text)
    if isinstance(message, Ready | Queued):
        return message
    if isinstance(message, Error):
        raise RefusedError(message.code, message.message, message.retry_after)
    raise RefusedError("not_parakeet", "the server does not speak the parakeet-live protocol; check the URL")


def parse_message(text: str | bytes) -> tuple[int | None, Ack | Event | None]:
    """A later message and its number; None if there is nothing to report. Raises ServerError if it is fatal."""
    fields = json.loads(text)
    message = understand(fields)
    if isinstance(message, Error) and message.fatal:
        raise ServerError(message.code, message.message, message.retry_after)
    return fields.get("seq"), None if isinstance(message, Ready | Queued) else message


def refused(url: str, error: Exception) -> RefusedError:
    """Why no connection came about."""
    if not isinstance(error, InvalidStatus):
        return RefusedError("unreachable", f"cannot connect to {url}: {str(error) or type(error).__name__}")
    status = error.response.status_code
    try:
        parse_greeting(bytes(error.response.body or b""))
    except RefusedError as reason:
        return reason
    except (ValueError, KeyError, TypeError):
        pass  # not from a parakeet-live server, but from a proxy before it
    return RefusedError(f"http_{status}", f"{url} answered with HTTP status {status}; check the URL")


def lost(reason: str) -> ConnectionLostError:
    """The connection ended early."""
    return ConnectionLostError(f"the connection ended before the session was done: {reason}")


def sample_bytes(ready: Ready) -> int:
    """Bytes of one sample of all channels."""
    return SAMPLE_WIDTHS.get(ready.encoding, 1) * ready.channels
