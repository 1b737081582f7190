"""``parakeet-live models list``: what is published, and what of it is here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parakeet_live.cli.console import fail
from parakeet_models.hub import (
    CATALOGUE,
    Candidate,
    Entry,
    HubError,
    Standing,
    Store,
    candidates,
    choose,
    default_entry,
    native_runtime,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One model; ``problem`` says why it does not run, ``standing`` what is known of a published one."""

    name: str
    runtime: str
    here: bool
    chosen: bool
    """It runs when no model is named."""
    default_pull: bool
    """`models pull` without a name gets it."""
    megabytes: float
    licence: str
    repository: str
    directory: str
    standing: str
    note: str
    problem: str


def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is known, as JSON.")] = False,
) -> None:
    """List the models that are here, and those that `models pull` gets."""
    store = Store.default()
    try:
        rows = list(_rows(store))
    except HubError as error:
        fail(str(error))
    if as_json:
        print(json.dumps({"directory": str(store.root), "models": [asdict(row) for row in rows]}, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(_table([row for row in rows if row.here], "here"))
    console.print(_table([row for row in rows if not row.here], "parakeet-live models pull NAME"))
    for standing in Standing:
        console.print(f"{standing}: {standing.meaning}")
    console.print(f"models are kept in {store.root}", markup=False)
    console.print("* runs when no model is named; > is what `models pull` gets when none is named")


def _rows(store: Store) -> Iterator[Row]:
    native = native_runtime()
    here = candidates(store, native)
    chosen = choose(here).candidate
    published = {entry.name: entry for entry in CATALOGUE}
    for candidate in here:
        yield _row_here(candidate, published.pop(candidate.name, None), chosen=candidate is chosen)
    default = default_entry(native)
    for entry in published.values():
        yield _row_published(entry, default=entry is default)


def _row_here(candidate: Candidate, entry: Entry | None, *, chosen: bool) -> Row:
    own = "ships with the package" if candidate.embedded else "a bundle put into the directory of models"
    return Row(
        name=candidate.name,
        runtime=candidate.runtime.value,
        here=True,
        chosen=chosen,
        default_pull=False,
        megabytes=round(candidate.bytes / 1e6, 1),
        licence=candidate.licence,
        repository=entry.repository if entry else "",
        directory=str(candidate.directory),
        note=entry.note if entry else own,
        standing=entry.standing.value if entry else "",
        problem=candidate.problem,
    )


def _row_published(entry: Entry, *, default: bool) -> Row:
    return Row(
        name=entry.name,
        runtime=entry.runtime.value,
        here=False,
        chosen=False,
        default_pull=default,
        megabytes=entry.megabytes,
        licence=entry.licence,
        repository=entry.repository,
        directory="",
        note=entry.note,
        standing=entry.standing.value,
        problem="",
    )


def _table(rows: list[Row], title: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, no_wrap=True)
    table.add_column("runtime")
    table.add_column("MB", justify="right")
    table.add_column("known", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        mark = "* " if row.chosen else "> " if row.default_pull else "  "
        what = "; ".join(filter(None, [row.note, row.problem]))
        table.add_row(mark + row.name, row.runtime, f"{row.megabytes:.0f}", row.standing, escape(what))
    return table
