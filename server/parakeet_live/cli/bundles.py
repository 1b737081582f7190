"""Chooses the bundle a command runs with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parakeet_live.cli.console import fail, notes
from parakeet_live.engine.backend import Backend, EngineError
from parakeet_live.engine.backends import BackendChoice, check_choice, open_backend
from parakeet_models.bundle import BundleError
from parakeet_models.hub import HubError, Store, candidates, choose, lookup, native_runtime, resolve
from parakeet_models.layouts import AnyBundle, load_model

if TYPE_CHECKING:
    from parakeet_live.engine.offline import Transcriber

ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="NAME|BUNDLE_DIR",
        help="Short name of a model (see `models list`), or directory of a bundle or of a published export. "
        "Without it, the best model that is here; that is the small embedded one until another is pulled.",
    ),
]

BackendOption = Annotated[
    BackendChoice, typer.Option("--backend", help="What runs the network; auto follows the model.")
]


def check_backend(bundle: AnyBundle, backend: BackendChoice) -> None:
    """End the command here if this backend does not run this bundle."""
    try:
        check_choice(bundle, backend)
    except EngineError as error:
        fail(str(error))


def start_transcriber(
    bundle: AnyBundle, backend: BackendChoice, step_frames: int | None = None
) -> Transcriber:
    """The engine for one recording after the other; says on standard error what takes long."""
    from parakeet_live.engine.offline import Transcriber

    try:
        return Transcriber(bundle, step_frames, backend=backend, report=_note)
    except EngineError as error:
        fail(str(error))


def start_backend(bundle: AnyBundle, backend: BackendChoice, slots: int) -> Backend:
    """The engine for many recordings at a time; says on standard error what takes long."""
    try:
        return open_backend(bundle, slots, backend, report=_note)
    except EngineError as error:
        fail(str(error))


def _note(line: str) -> None:
    notes.print(line, markup=False)


def choose_bundle(model: Path | None) -> AnyBundle:
    """The bundle of this directory or short name, or the best one here; says which on standard error, and why."""
    try:
        directory, reason = _find(model)
        bundle = load_model(directory)
    except (BundleError, HubError) as error:
        fail(str(error))
    manifest = bundle.manifest
    languages = ", ".join(manifest.languages)
    notes.print(
        f"model {manifest.name} ({reason}); languages: {languages}; licence: {manifest.licence}",
        markup=False,
    )
    if manifest.weights_origin == "random":
        notes.print(
            "warning: this model has random weights: for benchmarks only, its words are noise", style="yellow"
        )
    return bundle


def _find(model: Path | None) -> tuple[Path, str]:
    """Directory of the bundle, and why it is this one."""
    store = Store.default()
    if model is None:
        choice = choose(candidates(store, native_runtime()))
        return choice.candidate.directory, f"{choice.reason}; --model picks another"
    directory = find_directory(model, store)
    return directory, f"from {directory}"


def find_directory(model: Path, store: Store) -> Path:
    """The directory that a user's NAME or BUNDLE_DIR means.

    Raises:
        HubError: there is neither such a directory nor such a model.
    """
    is_name = len(model.parts) == 1 or lookup(str(model)) is not None
    if model.is_dir() or not is_name:
        return model
    try:
        return resolve(str(model), store)
    except HubError as error:
        raise HubError(f"no directory {model} here: {error}") from error
