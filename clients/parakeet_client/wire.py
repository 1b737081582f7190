"""What the asynchronous and the blocking client share: URLs, frames, and the meaning of what arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from parakeet_client.errors import ConnectionLostError, RefusedError, ServerError
from parakeet_client.events import Ack, Error, Event, Queued, Ready, parse

FINALIZE = '{"type":"finalize"}'
CANCEL = '{"type":"cancel"}'
END = '{"type":"end"}'
KEEPALIVE = '{"type":"keepalive"}'

FRAME_BYTES = 256 * 1024
"""Larger blocks of audio are cut, so that no limit of a server or proxy on the size of a message matters."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
PING_TIMEOUT_SECONDS = 120.0
"""While audio is sent faster than it is recognised the server reads slowly, and so answers pings late."""

Buffer = bytes | bytearray | memoryview


def stream_url(url: str, encoding: str | None, sample_rate: int | None, channels: int | None) -> str:
    """``url`` with the stated format added to its query; None states nothing."""
    stated = {"encoding": encoding, "sample_rate": sample_rate, "channels": channels}
    query = urlencode({name: value for name, value in stated.items() if value is not None})
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, query)))))


def configure(options: Mapping[str, str | int | bool]) -> str:
    """The message that changes when utterances end."""
    return json.dumps({"type": "configure", **options})


def frames(audio: Buffer) -> Iterator[memoryview]:
    """Pieces of at most FRAME_BYTES, without copying."""
    view = memoryview(audio).cast("B")
    for start in range(0, len(view), FRAME_BYTES):
        yield view[start : start + FRAME_BYTES]


def parse_greeting(text: str | bytes) -> Ready | Queued:
    """A message before the session has begun. Raises RefusedError if it is a refusal."""
    message = parse(text)
    if isinstance(message, Ready | Queued):
        return message
    if isinstance(message, Error):
        raise RefusedError(message.code, message.message)
    raise RefusedError("not_parakeet", "the server does not speak the parakeet-live protocol; check the URL")


def parse_event(text: str | bytes) -> Event | None:
    """A later message; None if there is nothing to report. Raises ServerError if it is fatal."""
    message = parse(text)
    if isinstance(message, Error) and message.fatal:
        raise ServerError(message.code, message.message)
    return None if isinstance(message, Ready | Queued | Ack) else message


def refused(url: str, error: OSError | InvalidHandshake) -> RefusedError:
    """Why no connection came about."""
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return RefusedError(f"http_{status}", f"{url} answered with HTTP status {status}; check the URL")
    return RefusedError("unreachable", f"cannot connect to {url}: {str(error) or type(error).__name__}")


def lost(error: ConnectionClosed) -> ConnectionLostError:
    """The connection ended early."""
    return ConnectionLostError(f"the connection ended before the session was done: {error}")
