"""``parakeet-live models``: gets, makes and looks after models; one module for each command."""

from __future__ import annotations

import typer

from parakeet_live.cli.models.convert import convert_model
from parakeet_live.cli.models.info import show_info
from parakeet_live.cli.models.list import list_models
from parakeet_live.cli.models.pull import pull_model
from parakeet_live.cli.models.verify import verify_model

models = typer.Typer(help="Get, make and look after model bundles.", no_args_is_help=True)


@models.callback()
def _group() -> None:
    """Get, make and look after model bundles."""


models.command("list")(list_models)
models.command("pull")(pull_model)
models.command("info")(show_info)
models.command("verify")(verify_model)
models.command("convert")(convert_model)
