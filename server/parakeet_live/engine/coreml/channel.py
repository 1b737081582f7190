"""One end of the connection between a backend and its worker."""

from __future__ import annotations

import socket
from contextlib import suppress

from parakeet_live.engine.coreml.messages import HEADER, Kind


class ClosedError(Exception):
    """The other end is gone."""


class Channel:
    """Frames over a connected stream socket. One thread at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Raises ClosedError."""
        try:
            self._connection.sendall(HEADER.pack(kind, len(body)) + body)
        except OSError as error:
            raise ClosedError(str(error)) from error

    def receive(self, timeout: float | None = None) -> tuple[Kind, bytes]:
        """The next frame. Raises ClosedError, and TimeoutError after ``timeout`` seconds without one."""
        self._connection.settimeout(timeout)
        kind, length = HEADER.unpack(self._exactly(HEADER.size))
        return Kind(kind), self._exactly(length)

    def close(self) -> None:
        """The other end reads ClosedError from now on."""
        with suppress(OSError):  # the other end may have been faster
            # Also wakes a thread that is waiting for a frame.
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            try:
                read = self._connection.recv_into(view)
            except TimeoutError:
                raise
            except OSError as error:
                raise ClosedError(str(error)) from error
            if not read:
                raise ClosedError("end of stream")
            view = view[read:]
        return bytes(data)
