"""``parakeet-live models verify``: are the files still what was pulled or converted?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from parakeet_live.cli.bundles import find_directory
from parakeet_live.cli.console import fail, notes, progress_bar
from parakeet_live.cli.models.info import ModelArgument
from parakeet_models.bundle import MANIFEST_NAME, BundleError, BundleFile, read_manifest
from parakeet_models.hub import (
    FileState,
    HubError,
    LockedFile,
    Store,
    candidates,
    native_runtime,
    read_lock,
    verify_files,
)


def verify_model(model: ModelArgument = None) -> None:
    """Hash every file again, against the lock file of a pulled model or the manifest of a bundle.

    Without NAME all models that are here. The exit code is 1 when a file is missing or was changed.
    """
    store = Store.default()
    try:
        if model is not None:
            directories = [find_directory(model, store)]
        else:
            directories = [candidate.directory for candidate in candidates(store, native_runtime())]
        damaged = [directory for directory in directories if not _verify(directory)]
    except (HubError, BundleError) as error:
        fail(str(error))
    if damaged:
        raise typer.Exit(1)


def _verify(directory: Path) -> bool:
    """Check one model and say how it is."""
    files, remedy = _files(directory)
    with progress_bar() as progress:
        task = progress.add_task(directory.name, total=sum(file.bytes for file in files))
        findings = list(verify_files(directory, files, lambda size: progress.advance(task, size)))
    bad = [finding for finding in findings if finding.state is not FileState.OK]
    for finding in bad:
        detail = f" ({finding.detail})" if finding.detail else ""
        notes.print(f"{directory / finding.path}: {finding.state}{detail}", markup=False)
    if bad:
        notes.print(
            f"{directory.name}: {len(bad)} of {len(findings)} files are not as they were; {remedy}",
            markup=False,
        )
    else:
        print(
            f"{directory.name}: {len(findings)} files, {sum(file.bytes for file in files) / 1e6:.1f} MB, all ok"
        )
    return not bad


def _files(directory: Path) -> tuple[Sequence[LockedFile | BundleFile], str]:
    """What must be there, and what to do when it is not."""
    if (lock := read_lock(directory)) is not None:
        return lock.files, f"repair: parakeet-live models pull {lock.name} --revision {lock.revision}"
    if (directory / MANIFEST_NAME).is_file():
        return read_manifest(directory).files, "copy or convert the bundle again"
    raise HubError(
        f"{directory}: neither {MANIFEST_NAME} nor a lock file, so there is nothing to compare with"
    )
