"""The ``parakeet-live`` command: one module for each sub-command.

Sub-commands import what they need when they run, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

import parakeet_live.blas  # noqa: F401 - first
from parakeet_live.cli.bench import bench
from parakeet_live.cli.config import config
from parakeet_live.cli.demo import demo
from parakeet_live.cli.doctor import doctor
from parakeet_live.cli.evaluate import evaluate
from parakeet_live.cli.keys import keys
from parakeet_live.cli.listen import listen
from parakeet_live.cli.models import models
from parakeet_live.cli.serve import serve
from parakeet_live.cli.transcribe import transcribe

app = typer.Typer(
    name="parakeet-live",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"parakeet-live {version('parakeet-live')}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Live speech to text over a WebSocket.

    New here? `parakeet-live demo` shows it at work. `parakeet-live serve` starts the server,
    `parakeet-live transcribe FILE` turns recordings into text without one.
    """


app.command("demo")(demo)
app.command("serve")(serve)
app.command("listen")(listen)
app.command("config")(config)
app.command("transcribe")(transcribe)
app.command("eval")(evaluate)
app.command("bench")(bench)
app.add_typer(keys, name="keys")
app.command("doctor")(doctor)
app.add_typer(models, name="models")
