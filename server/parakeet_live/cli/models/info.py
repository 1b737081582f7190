"""``parakeet-live models info``: everything known about one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from parakeet_live.cli.bundles import find_directory
from parakeet_live.cli.console import fail
from parakeet_models.bundle import MANIFEST_NAME, BundleError, read_manifest
from parakeet_models.hub import (
    HubError,
    Runtime,
    Store,
    candidates,
    choose,
    lookup,
    native_runtime,
    read_lock,
)
from parakeet_models.layouts import Layout, LayoutError, describe

ModelArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="NAME|DIR",
        help="Short name of a model, or directory of one. Default: the one that runs when no model is named.",
    ),
]


def show_info(
    model: ModelArgument = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    path_only: Annotated[bool, typer.Option("--path", help="Only the directory.")] = False,
) -> None:
    """Show what a model is, where it came from, which files it has and what runs it."""
    store = Store.default()
    try:
        if model is None:
            model = choose(candidates(store, native_runtime())).candidate.directory
        facts = _facts(model, store)
    except (HubError, BundleError) as error:
        fail(str(error))
    if path_only:
        if "directory" not in facts:
            fail(f"{model} is not here yet; get it: parakeet-live models pull {model}")
        print(facts["directory"])
    elif as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts)


def _facts(model: Path, store: Store) -> dict[str, Any]:
    """What is known: of the catalogue for a model that is not here, of its files for one that is."""
    try:
        directory = find_directory(model, store)
    except HubError:
        if (entry := lookup(str(model))) is None:
            raise
        return {
            "name": entry.name,
            "here": False,
            "repository": entry.repository,
            "folder": entry.folder,
            "runtime": entry.runtime.value,
            "megabytes": entry.megabytes,
            "licence": entry.licence,
            "note": entry.note,
            "known": entry.standing.meaning,
            "get it": f"parakeet-live models pull {entry.name}",
        }
    facts: dict[str, Any] = {"here": True, "directory": str(directory)}
    lock = read_lock(directory)
    if lock is not None:
        facts |= lock.model_dump(mode="json", exclude={"format"})
    if (directory / MANIFEST_NAME).is_file():
        facts |= read_manifest(directory).model_dump(mode="json", exclude={"format"}, exclude_none=True)
        return facts
    try:
        return facts | _layout_facts(describe(directory))
    except LayoutError as error:
        if lock is None:
            raise
        entry = lookup(lock.name)
        if entry is not None and entry.runtime is Runtime.NEMO:
            return facts | {"runtime": entry.runtime.value, "known": entry.standing.meaning}
        return facts | {"not usable here": str(error)}


def _layout_facts(layout: Layout) -> dict[str, Any]:
    """What was recognised in a directory of published graphs."""
    ports, tokens = layout.encoder.ports, layout.tokens
    return {
        "layout": layout.title,
        "runtime": layout.runtime,
        "graphs": {part: path.name for part, path in layout.files.items()},
        "encoder frames per step": layout.hop,
        "mel frames per window": layout.window_frames,
        "encoder": {"layers": ports.layers or "open", "width": ports.d_model, "mel bands": layout.mel.bins},
        "vocabulary": {
            "pieces": len(layout.pieces),
            "EOU": tokens.eou,
            "EOB": tokens.eob,
            "blank": tokens.blank,
        },
    }


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _print(facts: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for name, value in facts.items():
        if name == "files":
            console.print("files")
            for file in value:
                console.print(
                    f"  {file['path']}  {_size(file['bytes'])}  {file['sha256'][:12]}", markup=False
                )
        elif isinstance(value, dict):
            console.print(
                f"{name}: {', '.join(f'{key} {_short(item)}' for key, item in value.items())}", markup=False
            )
        elif isinstance(value, list):
            console.print(f"{name}: {', '.join(map(str, value))}", markup=False)
        elif value != "":
            console.print(f"{name}: {value}", markup=False)
