"""Gives a command a flag for every setting, made of the fields of :class:`parakeet_live.settings.Settings`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic.fields import FieldInfo

from parakeet_live.cli.console import fail, notes
from parakeet_live.configuration import (
    ConfigurationError,
    flag_of,
    is_secret,
    load_configuration,
)
from parakeet_live.settings import GROUPS
from parakeet_live.settings_reference import meaning

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="TOML file with settings; flags and environment win over it."
    ),
]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command, called with the effective configuration as its first argument, with a flag for every setting.

    Secrets have no flag.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    flags = {
        name: field for group in GROUPS for name, field in group.model_fields.items() if not is_secret(name)
    }

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in flags}
        given = {name: value for name, value in given.items() if value not in (None, [])}
        try:
            configuration = load_configuration(given, arguments.pop("config"))
        except ConfigurationError as error:
            fail(str(error))
        for variable in configuration.unknown_variables:
            notes.print(f"warning: {variable} names no setting and is ignored", style="yellow", markup=False)
        command(configuration, **arguments)

    parameters = [
        inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ConfigFile),
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
    ]
    for group in GROUPS:
        for name, field in group.model_fields.items():
            if name in flags:
                parameters.append(_parameter(name, field, group.__doc__ or ""))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(name: str, field: FieldInfo, panel: str) -> inspect.Parameter:
    """A flag that is None unless it was given; pydantic sees to defaults."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind: Any = kinds[0] if kinds and type(None) in get_args(field.annotation) else field.annotation
    if kind == tuple[str, ...]:
        kind = list[str]
    flag = flag_of(name)
    option = typer.Option(
        # Nobody needs the opposite of --insecure-no-keys.
        f"{flag}/--no-{name.replace('_', '-')}" if kind is bool and "_no_" not in name else flag,
        help=meaning(field),
        show_default=_shown_default(field.default),
        rich_help_panel=panel,
        metavar=_metavar(kind),
    )
    optional: Any = Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=optional)


def _metavar(kind: Any) -> str:
    """One short word. Ranges and choices beside it would leave no room for the names of flags."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "NAME"
    return {int: "N", float: "N", bool: " ", Path: "PATH"}.get(kind, "TEXT")


def _shown_default(value: Any) -> str | bool:
    if value is None or value == ():
        return False
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
