"""The query parameters with which a connection continues a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parakeet_live.dialects.query import BadParameterError

_LARGEST_SEQ = 2**53


@dataclass(frozen=True, slots=True)
class ResumeClaim:
    """``seen`` is the number of the last result that the client has received, 0 if none."""

    token: str
    seen: int


def parse_resume(items: Iterable[tuple[str, str]]) -> tuple[ResumeClaim | None, list[tuple[str, str]]]:
    """The claim to an earlier session, if there is one, and the other parameters. Raises BadParameterError."""
    found: dict[str, str] = {}
    others = []
    for name, value in items:
        if name not in ("resume", "seen"):
            others.append((name, value))
        elif name in found:
            raise BadParameterError(f"query parameter {name} is given more than once; give it once")
        else:
            found[name] = value
    if not found:
        return None, others
    if not found.get("resume"):
        raise BadParameterError("seen goes with resume=TOKEN, the resume_token of the `ready` message")
    seen = found.get("seen", "")
    if not (seen.isascii() and seen.isdecimal() and len(seen) <= 16 and int(seen) <= _LARGEST_SEQ):
        raise BadParameterError("resume needs seen=SEQ, the seq of the last message that you received, or 0")
    return ResumeClaim(found["resume"], int(seen)), others
