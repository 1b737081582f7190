"""``parakeet-live config``: the settings the server would start with."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.cli.console import fail
from parakeet_live.cli.settings_flags import with_settings
from parakeet_live.configuration import Configuration, is_secret
from parakeet_live.settings import GROUPS


@with_settings
def config(
    configuration: Configuration,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object, with the origin of each value.")
    ] = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="A settings file for --config.")] = False,
) -> None:
    """Print every setting, its effective value and where that comes from. Secrets are masked.

    Takes the same flags as `serve`. Flags win over environment variables, these over the settings file.
    """
    if as_json and as_toml:
        fail("choose one of --json and --toml")
    if as_json:
        print(json.dumps(_document(configuration), indent=2))
    elif as_toml:
        print(_toml(configuration), end="")
    else:
        _print_table(configuration)


def _document(configuration: Configuration) -> dict[str, Any]:
    values = configuration.settings.model_dump(mode="json")
    return {name: {"value": value, "origin": configuration.origins[name]} for name, value in values.items()}


def _toml(configuration: Configuration) -> str:
    """What is not set, and every secret, stays a comment."""
    values = configuration.settings.model_dump(mode="json")
    lines = []
    for group in GROUPS:
        lines.append(f"# {group.__doc__}")
        for name in group.model_fields:
            value = values[name]
            # A JSON string, number, boolean or array of these is a TOML one.
            lines.append(
                f"# {name} =" if value is None or is_secret(name) else f"{name} = {json.dumps(value)}"
            )
        lines.append("")
    return "\n".join(lines)


def _print_table(configuration: Configuration) -> None:
    values = configuration.settings.model_dump(mode="json")
    console = Console(highlight=False, soft_wrap=True)
    for group in GROUPS:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=group.__doc__, title_justify="left")
        for heading in ("setting", "value", "from"):
            table.add_column(heading, no_wrap=True)
        for name in group.model_fields:
            table.add_row(name, _shown(values[name]), configuration.origins[name])
        console.print(table)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return str(value)
