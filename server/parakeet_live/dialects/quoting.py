"""Text of a client inside a message of the server."""

from __future__ import annotations


def shown(text: str) -> str:
    """Short, and ASCII, because lone surrogates cannot be sent."""
    return ascii(text if len(text) <= 40 else text[:40] + "...")
