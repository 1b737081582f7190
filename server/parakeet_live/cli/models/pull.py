"""``parakeet-live models pull``: published weights from the Hugging Face Hub."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from parakeet_live.cli.console import fail, notes
from parakeet_models.bundle import EMBEDDED_NAME
from parakeet_models.hub import Entry, HubError, Runtime, Standing, Store, default_entry, find, native_runtime

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def pull_model(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Short name from `models list`. Default: Core ML packages on a Mac, ONNX graphs elsewhere.",
        ),
    ] = None,
    revision: Annotated[
        str,
        typer.Option(
            help="Branch, tag or commit of the repository; the lock file of a model names its commit."
        ),
    ] = "main",
) -> None:
    """Download published weights, check them, and remember exactly which they are.

    Run it again to go on after an interruption, to repair damaged files, or to get a newer revision. Once a model
    is here, nothing needs the network. HF_ENDPOINT names a mirror, HF_TOKEN a token, as everywhere with the hub.
    """
    from parakeet_models.hub.pull import plan_pull, pull

    # Warnings of the hub's library tell of every retry what the messages here tell at the end.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    store = Store.default()
    if name == EMBEDDED_NAME:
        fail(f"{EMBEDDED_NAME} ships with the package: there is nothing to pull")
    try:
        entry = find(name) if name else default_entry(native_runtime())
        if entry.standing is Standing.REFUSED:
            notes.print(f"warning: {entry.name}: {entry.standing.meaning}", style="yellow", markup=False)
        plan = plan_pull(entry, store, revision)
        notes.print(
            f"{entry.name}: {entry.repository} at {plan.revision[:12]}, {plan.bytes / 1e6:.1f} MB, "
            f"licence {plan.licence or entry.licence}",
            markup=False,
        )
        with _download_bar() as progress:
            task = progress.add_task(entry.name, total=plan.bytes)
            directory = pull(plan, store, lambda count: progress.advance(task, count))
    except HubError as error:
        fail(str(error))
    except KeyboardInterrupt:
        notes.print("interrupted; what has come is kept, and the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    notes.print(f"{entry.name} is in {directory}", markup=False)
    notes.print(f"next: {_next_step(entry, directory, store)}", markup=False)


def _next_step(entry: Entry, directory: Path, store: Store) -> str:
    if entry.runtime is not Runtime.NEMO:
        return f"parakeet-live serve --model {entry.name}"
    # In the directory of models it is found by its name, and chosen when no model is named.
    if native_runtime() is Runtime.COREML:
        options, out = "--to coreml", store.directory("eou-120m-coreml")
    else:
        options, out = "--precision int8", store.directory("eou-120m-int8")
    return f"parakeet-live models convert {directory / entry.needed[0]} {options} --out {out}"


def _download_bar() -> Progress:
    """As :func:`parakeet_live.cli.console.progress_bar`, in bytes."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
        disable=not notes.is_terminal,
    )
