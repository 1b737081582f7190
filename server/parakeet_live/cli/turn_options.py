"""Flags about turns, the same for every command that makes text: when they end, and how readable they are."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from pydantic import ValidationError

from parakeet_client import Options
from parakeet_live.cli.console import fail
from parakeet_live.dialects.options import EndpointingOptions, explained
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig, Preset

PANEL = "Ends of turns"


def _number(help_text: str) -> Any:
    return typer.Option(metavar="MS", help=help_text, rich_help_panel=PANEL, show_default=False)


EndpointingOption = Annotated[
    Preset | None,
    typer.Option(
        help="How long a pause ends a turn. Default: conversation. The numbers below override the preset's.",
        rich_help_panel=PANEL,
    ),
]
EouSilenceOption = Annotated[int | None, _number("Silence after the model's end of utterance.")]
EouHoldOption = Annotated[int | None, _number("How much longer that may take while a voice is heard.")]
SilenceOption = Annotated[int | None, _number("Silence where the model says nothing.")]
SilenceHoldOption = Annotated[int | None, _number("How much longer that may take while a voice is heard.")]
MaxUtteranceOption = Annotated[int | None, _number("Length from which the next word begins another turn.")]
VadOption = Annotated[
    bool | None,
    typer.Option(
        "--vad/--no-vad",
        help="Whether a voice detector may put an end off. Default: it may.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME,...",
        help="Readable text: numerals (numbers as digits), punctuation (sentence case and a final mark), "
        "or both. JSON has it beside the raw text.",
    ),
]


def endpointing_config(**options: Preset | int | None) -> EndpointingConfig:
    """The numbers of these flags, None where one was not given. Ends the command for one that is not possible."""
    try:
        return EndpointingOptions.model_validate(options).applied_to(DEFAULT)
    except ValidationError as error:
        fail(explained(error))


def as_options(**options: Any) -> Options:
    """The flags that were given, for a client."""
    return cast(Options, {name: value for name, value in options.items() if value is not None})
