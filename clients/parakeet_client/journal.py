"""What was sent and may have to be sent again: everything that the server has not acknowledged, in order.

No sockets. Positions are those of the protocol: bytes of audio, and control messages (``finalize`` and the like).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WAV_MAGIC = b"RIFF"


@dataclass(frozen=True, slots=True)
class _Entry:
    message: bytes | str
    audio_end: int
    """Bytes of audio up to the end of this message."""
    controls: int
    """Control messages up to and with this message."""


class Journal:
    """Messages go in with :meth:`add`, out in order with :meth:`unsent` and :meth:`advance`."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._sent = 0
        """Entries at the front that have been sent on this connection."""
        self._audio_bytes = 0
        self._controls = 0
        self._size = 0
        self._dropped = 0
        """Bytes that belonged to sessions before this one."""
        self._wav = False

    @property
    def size(self) -> int:
        """Bytes of audio kept."""
        return self._size

    @property
    def audio_bytes(self) -> int:
        """Bytes of audio added, of all sessions."""
        return self._dropped + self._audio_bytes

    @property
    def continuable(self) -> bool:
        """Whether another session can go on in the middle: not in a WAV file, whose header only the first one has."""
        return not self._wav

    def add(self, message: bytes | str) -> None:
        """Append audio (bytes) or a control message (str)."""
        if isinstance(message, str):
            self._controls += 1
        else:
            if self._audio_bytes == self._dropped == 0:
                self._wav = message[:4] == WAV_MAGIC
            self._audio_bytes += len(message)
            self._size += len(message)
        self._entries.append(_Entry(message, self._audio_bytes, self._controls))

    def unsent(self) -> bytes | str | None:
        """The next message to send; None if all are sent."""
        return self._entries[self._sent].message if self._sent < len(self._entries) else None

    def advance(self) -> None:
        """That message has been sent."""
        self._sent += 1

    def acknowledge(self, audio_bytes: int, controls: int) -> None:
        """The server has everything up to here; it is forgotten."""
        while self._entries:
            first = self._entries[0]
            if first.audio_end > audio_bytes or first.controls > controls:
                break
            if isinstance(first.message, bytes):
                self._size -= len(first.message)
            self._entries.popleft()
            self._sent = max(0, self._sent - 1)

    def rewind(self, audio_bytes: int, controls: int) -> None:
        """A new connection of the same session, which has everything up to here: send the rest on it."""
        self.acknowledge(audio_bytes, controls)
        self._sent = 0
        if self._entries:
            first = self._entries[0]
            if isinstance(first.message, bytes):
                self._cut(len(first.message) - (first.audio_end - audio_bytes))

    def restart(self, frame_bytes: int, first: str | None) -> int:
        """A new session: send ``first``, then what is kept, from the next whole sample of ``frame_bytes`` on.

        Returns the position, in bytes of all audio, at which the session begins.
        """
        self._sent = 0
        kept = sum(len(entry.message) for entry in self._entries if isinstance(entry.message, bytes))
        position = self._audio_bytes - kept
        self._skip(-position % frame_bytes)
        begin = min(self._audio_bytes, position + -position % frame_bytes)
        entries, self._entries = self._entries, deque()
        self._dropped += begin
        self._audio_bytes = self._controls = self._size = 0
        for message in (first, *(entry.message for entry in entries)):
            if message is not None:
                self.add(message)
        return self._dropped

    def _skip(self, count: int) -> None:
        """Forget ``count`` bytes at the front."""
        for _ in range(len(self._entries)):
            first = self._entries[0]
            if count == 0 or isinstance(first.message, str):
                return
            if len(first.message) > count:
                self._cut(count)
                return
            count -= len(first.message)
            self._size -= len(first.message)
            self._entries.popleft()

    def _cut(self, count: int) -> None:
        """Forget the first ``count`` bytes of the first message."""
        first = self._entries[0]
        if count > 0 and isinstance(first.message, bytes):
            self._entries[0] = _Entry(first.message[count:], first.audio_end, first.controls)
            self._size -= count
