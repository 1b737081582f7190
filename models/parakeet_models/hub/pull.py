"""Pulls published weights: resolves the revision, downloads what is missing, checks every file, writes the lock.

The hub's library speaks to the hub, with its endpoint, token and offline settings. Its own cache is not used: that
names files by hash and links to them, while Core ML wants plain folders; and it drops what it has of a file when it
is interrupted, while an encoder is hundreds of megabytes. So files are written in place, over plain HTTP with ranges
(:mod:`parakeet_models.hub.download`), and a second pull goes on where the first stopped.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from huggingface_hub import HfApi, constants, hf_hub_url
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import filter_repo_objects

from parakeet_models.hub.catalogue import Entry
from parakeet_models.hub.download import Report, download
from parakeet_models.hub.errors import HubError
from parakeet_models.hub.failures import explained
from parakeet_models.hub.lock import (
    LOCK_NAME,
    FileState,
    Lock,
    LockedFile,
    git_blob_sha1,
    read_lock,
    sha256,
    verify_files,
    write_lock,
)
from parakeet_models.hub.store import DIRECTORY_VARIABLE, Store

MARGIN_BYTES = 16_000_000
"""Room that must be left on the disk."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to get; the hub names files in large-file storage by sha256, others by git's hash."""

    source: str
    path: str
    bytes: int
    sha256: str | None
    git_sha1: str

    def is_intact(self, path: Path) -> bool:
        """Whether the complete file at ``path`` has the content that the hub names."""
        return sha256(path) == self.sha256 if self.sha256 else git_blob_sha1(path) == self.git_sha1


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pull will do."""

    entry: Entry
    asked: str
    revision: str
    licence: str
    files: tuple[PlannedFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def plan_pull(entry: Entry, store: Store, asked: str = constants.DEFAULT_REVISION) -> Plan:
    """Ask the hub what the entry's files are at the revision ``asked`` (branch, tag or commit).

    Raises:
        HubError: no network, no such repository or revision, or the repository does not hold what is needed.
    """
    with explained(entry.repository, asked, store.directory(entry.name)):
        api = HfApi()
        info = api.model_info(entry.repository, revision=asked)
        if info.sha is None:
            raise HubError(f"{constants.ENDPOINT} names no commit for {entry.repository}; try another mirror")
        tree = api.list_repo_tree(
            entry.repository, path_in_repo=entry.folder or None, recursive=True, revision=info.sha
        )
        found = [
            PlannedFile(
                source=file.path,
                path=path,
                bytes=file.size,
                sha256=file.lfs.sha256 if file.lfs else None,
                git_sha1=file.blob_id,
            )
            for file in tree
            if isinstance(file, RepoFile) and (path := entry.local_path(file.path)) is not None
        ]
    files = tuple(filter_repo_objects(found, allow_patterns=list(entry.patterns), key=lambda file: file.path))
    paths = [file.path for file in files]
    missing = [name for name in entry.needed if not any(p == name or p.startswith(f"{name}/") for p in paths)]
    if missing:
        raise HubError(
            f"{entry.repository} at {info.sha[:12]} lacks {', '.join(missing)}: the repository was rearranged; "
            "name an older commit with --revision, or update parakeet-live"
        )
    return Plan(entry, asked, info.sha, _licence(info.card_data), files)


def pull(plan: Plan, store: Store, report: Report = lambda count: None) -> Path:
    """Download what is missing, check it, and put it in place of an older copy; returns the model's directory.

    A model that is there at this revision is verified, and files that were damaged are got again.

    Raises:
        HubError: interrupted by the network, the disk or another pull, or a file is not what the hub says.
    """
    name = plan.entry.name
    target, partial = store.directory(name), store.partial(name, plan.revision)
    with explained(plan.entry.repository, plan.asked, target):
        partial.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(partial.parent / f"{name}.lock", timeout=0):
                if _is_there(plan, target):
                    report(plan.bytes)
                    return target
                _begin(plan, target, partial)
                _check_space(plan, partial)
                files = tuple(_get(plan, file, partial, report) for file in plan.files)
                write_lock(partial, _lock(plan, files))
                _replace(target, partial)
                _forget_older(partial.parent, name)
        except Timeout:
            raise HubError(f"{name} is being pulled by another process; wait for it") from None
    return target


def _is_there(plan: Plan, target: Path) -> bool:
    """Whether ``target`` holds this revision, undamaged."""
    lock = read_lock(target)
    if lock is None or lock.revision != plan.revision:
        return False
    return all(finding.state is FileState.OK for finding in verify_files(target, lock.files))


def _begin(plan: Plan, target: Path, partial: Path) -> None:
    """Make the directory to download into; a damaged copy of this revision becomes the start of it."""
    lock = read_lock(target)
    if lock is not None and lock.revision == plan.revision and not partial.exists():
        target.rename(partial)
        (partial / LOCK_NAME).unlink()
    partial.mkdir(exist_ok=True)


def _get(plan: Plan, file: PlannedFile, directory: Path, report: Report) -> LockedFile:
    """One complete, checked file; bytes that are on disk already are not asked for again."""
    path = directory / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    had = _size(path)
    if had > file.bytes:
        path.unlink()
        had = 0
    report(had)
    url = hf_hub_url(plan.entry.repository, file.source, revision=plan.revision)
    download(url, path, file.bytes, report)
    if had and not file.is_intact(path):  # what was there was something else
        path.unlink()
        report(-file.bytes)
        download(url, path, file.bytes, report)
    if not file.is_intact(path):
        path.unlink()
        raise HubError(
            f"{file.source} is not what {constants.ENDPOINT} says it is: its checksum differs. Run the command again; "
            "if that does not help, a proxy or mirror on the way changes files"
        )
    return LockedFile(path=file.path, bytes=file.bytes, sha256=sha256(path), source=file.source)


def _check_space(plan: Plan, partial: Path) -> None:
    """Refuse what cannot fit before it has filled the disk."""
    have = sum(_size(partial / file.path) for file in plan.files)
    needed = plan.bytes - have + MARGIN_BYTES
    free = shutil.disk_usage(partial).free
    if free < needed:
        raise HubError(
            f"{plan.entry.name} needs {needed / 1e6:.0f} MB, and {partial.parent.parent} has {free / 1e6:.0f} MB free: "
            f"make room, or name a directory on another disk with {DIRECTORY_VARIABLE}"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _replace(target: Path, complete: Path) -> None:
    """Put the directory ``complete`` at ``target``; an older one there is moved away first, then deleted."""
    old = complete.with_name(f"{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    complete.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _forget_older(partials: Path, name: str) -> None:
    """Delete what was begun of other revisions."""
    for path in partials.glob(f"{name}@*"):
        shutil.rmtree(path, ignore_errors=True)


def _lock(plan: Plan, files: tuple[LockedFile, ...]) -> Lock:
    return Lock(
        name=plan.entry.name,
        repository=plan.entry.repository,
        endpoint=constants.ENDPOINT,
        asked=plan.asked,
        revision=plan.revision,
        licence=plan.licence,
        pulled=datetime.now(UTC).replace(microsecond=0),
        files=files,
    )


def _licence(card: Any) -> str:
    """The licence a repository's card states: a name of its own where the identifier is just "other"."""
    identifier = getattr(card, "license", None)
    chosen = (getattr(card, "license_name", None) or identifier) if identifier == "other" else identifier
    return chosen if isinstance(chosen, str) else ""
