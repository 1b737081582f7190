"""What each key uses: streams at the same time, and minutes of audio on a day. In memory: a restart begins anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from parakeet_live.access.keys import KeyRecord


class KeyLimitError(Exception):
    """The key has used up what it may; the message says what."""


@dataclass(slots=True)
class _Account:
    day: date
    streams: int = 0
    audio_ms: float = 0.0


def _utc_day() -> date:
    return datetime.now(UTC).date()


class Usage:
    """The accounts of all keys."""

    def __init__(
        self,
        max_streams: int | None = None,
        audio_minutes_per_day: int | None = None,
        *,
        today: Callable[[], date] = _utc_day,
    ) -> None:
        """The limits are for keys that have none of their own; None is no limit."""
        self._max_streams = max_streams
        self._audio_minutes = audio_minutes_per_day
        self._today = today
        self._accounts: dict[str, _Account] = {}

    def open(self, key: KeyRecord) -> Lease:
        """One more stream. Raises KeyLimitError."""
        account = self._account(key)
        limit = key.max_streams or self._max_streams
        if limit is not None and account.streams >= limit:
            raise KeyLimitError(f"this key has {limit} streams open, which is its limit; close one first")
        self.check_audio(key)
        account.streams += 1
        return Lease(self, key)

    def close(self, key: KeyRecord) -> None:
        """One stream less."""
        self._accounts[key.id].streams -= 1

    def add_audio(self, key: KeyRecord, milliseconds: float) -> None:
        """So much audio came in. Raises KeyLimitError if it is more than the key may send today."""
        self._account(key).audio_ms += milliseconds
        self.check_audio(key)

    def check_audio(self, key: KeyRecord) -> None:
        """Raises KeyLimitError if the key has sent what it may today."""
        minutes = key.audio_minutes_per_day or self._audio_minutes
        if minutes is not None and self._account(key).audio_ms >= 60_000 * minutes:
            raise KeyLimitError(
                f"this key has sent {minutes} minutes of audio today, which is its limit; "
                "the next day begins at midnight UTC"
            )

    def _account(self, key: KeyRecord) -> _Account:
        today = self._today()
        account = self._accounts.setdefault(key.id, _Account(today))
        if account.day != today:
            account.day, account.audio_ms = today, 0.0
        return account


class Lease:
    """The right to one stream; give it back with :meth:`close`. Without a key nothing is counted."""

    def __init__(self, usage: Usage | None = None, key: KeyRecord | None = None) -> None:
        self._usage = usage
        self._key = key

    @property
    def holder(self) -> str:
        """Name and id of the key; empty without one."""
        return self._key.label if self._key is not None else ""

    def add_audio(self, milliseconds: float) -> None:
        """Count audio that came in. Raises KeyLimitError."""
        if self._usage is not None and self._key is not None:
            self._usage.add_audio(self._key, milliseconds)

    def close(self) -> None:
        """A second call does nothing."""
        usage, self._usage = self._usage, None
        if usage is not None and self._key is not None:
            usage.close(self._key)
