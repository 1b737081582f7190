"""Where the command line writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

STDOUT = Path("-")
"""File name that stands for standard output."""

notes = Console(stderr=True, highlight=False, soft_wrap=True)
"""For notes, errors and progress: never part of a result."""


def report_error(message: str) -> None:
    """One line on standard error, literal: square brackets in file names are not markup."""
    notes.print("error:", style="bold red", end=" ")
    notes.print(message, markup=False)


def fail(message: str) -> NoReturn:
    """Ends the command with exit code 1 and a message instead of a traceback."""
    report_error(message)
    raise typer.Exit(1)


def progress_bar() -> Progress:
    """A progress bar on standard error that appears only where that is a terminal, and leaves no trace."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
        redirect_stdout=False,  # rich would send results to standard error
        disable=not notes.is_terminal,
    )


def write_json(data: dict[str, Any], file: Path) -> None:
    """Every figure of a measurement, for programs, to ``file`` or standard output."""
    text = json.dumps(data, indent=2) + "\n"
    if file == STDOUT:
        print(text, end="")
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
