"""``parakeet-live keys``: makes, lists and revokes API keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.access.keys import KeyFileError, KeyRecord, new_key, read_key_file, write_key_file
from parakeet_live.cli.console import fail, notes
from parakeet_live.configuration import variable_of

FileOption = Annotated[
    Path,
    typer.Option("--file", metavar="FILE", envvar=variable_of("keys_file"), help="The server's `keys_file`."),
]

keys = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


@keys.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Who or what the key is for.")],
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            envvar=variable_of("keys_file"),
            help="File to add it to, made if need be. Without one its entry for the setting `keys` is printed.",
        ),
    ] = None,
    max_streams: Annotated[
        int | None, typer.Option(min=1, help="Streams at the same time with this key.")
    ] = None,
    audio_minutes_per_day: Annotated[
        int | None, typer.Option(min=1, help="Minutes of audio on one day (UTC) with this key.")
    ] = None,
) -> None:
    """Make a key and print it, once: only its hash is kept. A running server knows it at once."""
    if not name.strip() or ":" in name or len(name) > 100:
        fail("a name has 1 to 100 characters and no colon")
    key, record = new_key(name, max_streams=max_streams, audio_minutes_per_day=audio_minutes_per_day)
    if file is not None:
        held = _read(file) if file.exists() else ()
        _write(file, [*held, record])
        notes.print(
            f"key {record.id} for {name} is in {file}; this is the only time it is shown:", markup=False
        )
    elif max_streams or audio_minutes_per_day:
        fail("a key with limits needs a file: --file FILE")
    else:
        entry = f"{record.name}:{record.id}:{record.sha256}"
        notes.print(f"add this to {variable_of('keys')}, entries separated by commas: {entry}", markup=False)
        notes.print("the key, shown this once:", markup=False)
    print(key)


@keys.command("list")
def list_keys(file: FileOption) -> None:
    """Print the keys of a file: ids, names, limits."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("id", "name", "created", "max streams", "audio minutes a day"):
        table.add_column(heading)
    for key in _read(file):
        table.add_row(
            key.id,
            key.name,
            key.created[:10],
            str(key.max_streams or "-"),
            str(key.audio_minutes_per_day or "-"),
        )
    Console(highlight=False, soft_wrap=True).print(table)


@keys.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as `keys list` prints it.")],
    file: FileOption,
) -> None:
    """Remove a key. A running server refuses it, and its tokens, at once; open streams go on to their end."""
    held = _read(file)
    rest = [key for key in held if key.id != key_id]
    if len(rest) == len(held):
        fail(f"there is no key {key_id} in {file}; `parakeet-live keys list` prints the ids")
    _write(file, rest)
    notes.print(f"key {key_id} is revoked", markup=False)


def _read(file: Path) -> tuple[KeyRecord, ...]:
    try:
        return read_key_file(file)
    except KeyFileError as error:
        fail(str(error))


def _write(file: Path, records: Sequence[KeyRecord]) -> None:
    try:
        write_key_file(file, records)
    except KeyFileError as error:
        fail(str(error))
