"""``parakeet-live doctor``: what runs on this computer, how fast, and what is in the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parakeet_live.cli.bundles import ModelOption, find_directory
from parakeet_live.cli.console import fail, notes
from parakeet_models.hub import HubError, Store, native_runtime

if TYPE_CHECKING:
    from parakeet_live.doctor.checkup import Checkup

STYLES = {"ok": "green", "note": "dim", "warning": "yellow", "problem": "bold red"}


def doctor(
    model: ModelOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Also run the model in every way this computer has (on a Mac: on each of Core ML's compute units), "
            "compare what comes out, and print a report to paste into an issue.",
        ),
    ] = False,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="NAME|BUNDLE_DIR",
            help="With --verify: an ONNX bundle of the same network to compare with. "
            "Default: one that is here, else the first way to run.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.0, max=600.0, help="Length of the measurement; 0 skips it.")
    ] = 10.0,
    host: Annotated[str, typer.Option(help="Address whose port is tried.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to try.")] = 8765,
) -> None:
    """Check this computer: machine, system, libraries, models, what would run and why, and how fast that is.

    Ends with exit code 1 if live recognition does not work here as things are.
    """
    from parakeet_live.doctor.checkup import Request, check_up
    from parakeet_live.doctor.report import as_data, markdown

    if reference and not verify:
        fail("--reference goes with --verify")
    store = Store.default()
    try:
        request = Request(
            model=find_directory(model, store) if model else None,
            reference=find_directory(reference, store) if reference else None,
            seconds=seconds,
            verify=verify,
            host=host,
            port=port,
        )
        with notes.status("looking at this computer") as status:
            checkup = check_up(request, store, native_runtime(), status.update)
    except HubError as error:
        fail(str(error))
    if as_json:
        print(json.dumps(as_data(checkup), indent=2))
    else:
        _print(checkup)
        if verify:
            print("\nThe report, to paste into an issue:\n")
            print("\n".join(markdown(checkup)))
    if not checkup.healthy:
        raise typer.Exit(1)


def _print(checkup: Checkup) -> None:
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    for finding in checkup.findings:
        style = STYLES[finding.level]
        value = escape(finding.value) + (
            f"\n[{style}]> {escape(finding.remedy)}[/]" if finding.remedy else ""
        )
        table.add_row(f"[{style}]{finding.level}[/]", finding.subject, value)
    console.print(table)
