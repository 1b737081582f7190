"""The lock file: what exactly was pulled, so that it can be verified and got again.

It lies in the model's directory and is written last: a directory with a lock file is complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from parakeet_models.hub.errors import HubError

LOCK_NAME = "parakeet-live.lock.json"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LockedFile(_Strict):
    """One file: path in the local copy, size, hash of its content, and its path in the repository."""

    path: str = Field(min_length=1)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    source: str

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{path!r} lies outside of the model's directory")
        return path


class Lock(_Strict):
    """What ``parakeet-live.lock.json`` holds."""

    format: Literal[1] = 1
    name: str
    repository: str
    endpoint: str
    """Base URL of the hub or its mirror."""
    asked: str
    """The branch, tag or commit that was asked for."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The commit it stood for."""
    licence: str
    """As the repository states it; empty where it states none."""
    pulled: datetime
    files: tuple[LockedFile, ...] = Field(min_length=1)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


class FileState(StrEnum):
    """Of a file on disk, against the lock file or manifest."""

    OK = "ok"
    MISSING = "missing"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What verification found about one file."""

    path: str
    state: FileState
    detail: str = ""


def read_lock(directory: Path) -> Lock | None:
    """The lock file in ``directory``; None where there is none.

    Raises:
        HubError: it cannot be read.
    """
    path = directory / LOCK_NAME
    try:
        return Lock.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HubError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise HubError(f"{path}: not a lock file ({where}: {first['msg']}); pull the model again") from None


def write_lock(directory: Path, lock: Lock) -> None:
    """Write the lock file, the inverse of :func:`read_lock`."""
    text = lock.model_dump_json(indent=2) + "\n"
    (directory / LOCK_NAME).write_text(text, encoding="utf-8")


class Hashed(Protocol):
    """An entry of a lock file or of a bundle's manifest."""

    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...


def verify_files(
    directory: Path, files: Iterable[Hashed], report: Callable[[int], None] = lambda size: None
) -> Iterator[Finding]:
    """Hash every file again; ``report`` gets the size of each one done."""
    for file in files:
        path = directory / file.path
        if not path.is_file():
            yield Finding(file.path, FileState.MISSING)
        elif (actual := path.stat().st_size) != file.bytes:
            yield Finding(file.path, FileState.CHANGED, f"{actual} bytes instead of {file.bytes}")
        elif sha256(path) != file.sha256:
            yield Finding(file.path, FileState.CHANGED, "its sha256 differs")
        else:
            yield Finding(file.path, FileState.OK)
        report(file.bytes)


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def git_blob_sha1(path: Path) -> str:
    """The hash by which git, and so the hub, names a file that is not in large-file storage."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
