"""API keys: made here, kept as hashes, checked in constant time.

A key is ``plk_ID_SECRET``: the id finds the record, the secret is 256 random bits. Against so many, one SHA-256 is
enough: slow hashes are for passwords, which can be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

log = logging.getLogger(__name__)

KEY_PREFIX = "plk"
ID_PATTERN = r"^[0-9a-f]{8}$"
HASH_PATTERN = r"^[0-9a-f]{64}$"
NO_HASH = hashlib.sha256(b"no key has this hash").hexdigest()


class KeyFileError(Exception):
    """The keys cannot be read; the message names the remedy."""


class KeyRecord(BaseModel):
    """What the server keeps of a key. None means no limit of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=ID_PATTERN)
    name: str = Field(min_length=1, max_length=100)
    sha256: str = Field(pattern=HASH_PATTERN)
    created: str = ""
    max_streams: int | None = Field(default=None, ge=1)
    audio_minutes_per_day: int | None = Field(default=None, ge=1)

    @property
    def label(self) -> str:
        """Name and id, for logs: names need not be unique."""
        return f"{self.name} ({self.id})"


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()


def new_key(
    name: str, *, max_streams: int | None = None, audio_minutes_per_day: int | None = None
) -> tuple[str, KeyRecord]:
    """A new key and its record. The key itself cannot be had again."""
    number, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    record = KeyRecord(
        id=number,
        name=name,
        sha256=_hash(secret),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        max_streams=max_streams,
        audio_minutes_per_day=audio_minutes_per_day,
    )
    return f"{KEY_PREFIX}_{number}_{secret}", record


def read_key_file(path: Path) -> tuple[KeyRecord, ...]:
    """The records of a key file. Raises KeyFileError."""
    try:
        keys = _KeyFile.model_validate_json(path.read_bytes()).keys
    except FileNotFoundError:
        raise KeyFileError(
            f"no such key file: {path}; `parakeet-live keys new NAME --file {path}` makes it"
        ) from None
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise KeyFileError(
            f"the key file {path} is damaged at {place or 'the top'}: {problem['msg']}"
        ) from None
    if len({key.id for key in keys}) < len(keys):
        raise KeyFileError(f"the key file {path} has two keys with the same id; remove one")
    return keys


def write_key_file(path: Path, keys: Iterable[KeyRecord]) -> None:
    """Replace the file in one step, readable by its owner alone. Raises KeyFileError."""
    text = _KeyFile(keys=tuple(keys)).model_dump_json(indent=2, exclude_none=True) + "\n"
    try:
        # mkstemp makes files that only their owner may read.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise KeyFileError(f"cannot write the key file {path}: {error.strerror}") from error


def parse_entry(entry: str) -> KeyRecord:
    """``NAME:ID:SHA256``, as ``keys new`` prints it for the environment. Raises KeyFileError."""
    name, _, rest = entry.partition(":")
    number, _, digest = rest.partition(":")
    try:
        return KeyRecord(id=number, name=name, sha256=digest)
    except ValidationError:
        # The entry may be a key that somebody put here instead of its hash: it must not get into a log.
        raise KeyFileError(
            "an entry of `keys` is not NAME:ID:SHA256; `parakeet-live keys new NAME` prints one with each new key"
        ) from None


class KeyStore:
    """Every key the server knows: those of the file, which may change while it runs, and fixed ones."""

    def __init__(self, file: Path | None, fixed: Iterable[KeyRecord] = ()) -> None:
        """Raises KeyFileError if the file cannot be read."""
        self._file = file
        self._fixed = {key.id: key for key in fixed}
        self._seen: tuple[int, int, int] | None = None
        self._keys: Mapping[str, KeyRecord] = self._fixed
        if file is not None:
            self._seen = _state(file)
            self._keys = self._read(file)

    @property
    def configured(self) -> bool:
        """True if clients need a key, even if no key is left."""
        return self._file is not None or bool(self._fixed)

    def get(self, number: str) -> KeyRecord | None:
        """The key with this id, unless it was revoked."""
        self._refresh()
        return self._keys.get(number)

    def find(self, presented: str) -> KeyRecord | None:
        """The record of a key that a client shows; None if it is not valid. Takes the same time for any wrong key."""
        prefix, _, rest = presented.partition("_")
        number, _, secret = rest.partition("_")
        record = self.get(number) if prefix == KEY_PREFIX else None
        known = record.sha256 if record is not None else NO_HASH
        return record if hmac.compare_digest(_hash(secret), known) else None

    def _refresh(self) -> None:
        """Follow the file. One that is damaged changes nothing: nobody is let in or locked out by a slip."""
        if self._file is None or (state := _state(self._file)) == self._seen:
            return
        self._seen = state
        try:
            self._keys = self._read(self._file)
        except KeyFileError as error:
            log.error("the keys stay as they were: %s", error)
        else:
            log.info("read the key file again: %d keys", len(self._keys))

    def _read(self, file: Path) -> Mapping[str, KeyRecord]:
        return self._fixed | {key.id: key for key in read_key_file(file)}


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _state(file: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
