"""What can go wrong, as exceptions that say what to do."""

from __future__ import annotations


class ParakeetError(Exception):
    """Every error of this package."""


class ServerError(ParakeetError):
    """The server ended the session with a fatal error."""

    def __init__(self, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        """For programs, for example ``unsupported_container``; docs/protocol.md lists them."""
        self.message = message
        self.retry_after = retry_after
        """Seconds after which another attempt makes sense, if it does at all."""


class RefusedError(ServerError):
    """The server did not take the session at all: unreachable, full, wrong path or wrong format."""


class ConnectionLostError(ParakeetError):
    """The connection ended before the session was done, and none could be made in its place in time.

    Text that had not arrived is lost.
    """
