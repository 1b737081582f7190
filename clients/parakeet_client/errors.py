"""What can go wrong, as exceptions that say what to do."""

from __future__ import annotations


class ParakeetError(Exception):
    """Every error of this package."""


class ServerError(ParakeetError):
    """The server ended the session with a fatal error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        """For programs, for example ``unsupported_container``; docs/protocol.md lists them."""
        self.message = message


class RefusedError(ServerError):
    """The server did not take the session at all: unreachable, full, wrong path or wrong format."""


class ConnectionLostError(ParakeetError):
    """The connection ended before the session was done; text that had not arrived is lost."""
