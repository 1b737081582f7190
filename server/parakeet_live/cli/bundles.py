"""Chooses the bundle a command runs with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parakeet_live.cli.console import fail, notes
from parakeet_models.bundle import BundleError, embedded_bundle
from parakeet_models.layouts import AnyBundle, load_model

ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="BUNDLE_DIR",
        help="Directory of a model bundle. Without it the small model that ships with the package is used.",
    ),
]


def choose_bundle(directory: Path | None) -> AnyBundle:
    """The bundle in ``directory``, or the embedded one; says which on standard error, and why."""
    try:
        bundle: AnyBundle = load_model(directory) if directory else embedded_bundle()
    except BundleError as error:
        fail(str(error))
    manifest = bundle.manifest
    origin = f"from {directory}" if directory else "embedded; --model BUNDLE_DIR picks another"
    languages = ", ".join(manifest.languages)
    notes.print(
        f"model {manifest.name} ({origin}); languages: {languages}; licence: {manifest.licence}",
        markup=False,
    )
    if manifest.weights_origin == "random":
        notes.print(
            "warning: this model has random weights: for benchmarks only, its words are noise", style="yellow"
        )
    return bundle
