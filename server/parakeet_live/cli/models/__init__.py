"""``parakeet-live models``: makes and looks after model bundles; one module for each command."""

from __future__ import annotations

import typer

from parakeet_live.cli.models.convert import convert_model

models = typer.Typer(help="Make and look after model bundles.", no_args_is_help=True)


@models.callback()
def _group() -> None:
    """Make and look after model bundles."""


models.command("convert")(convert_model)
