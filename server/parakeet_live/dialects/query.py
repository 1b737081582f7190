"""The query of ``/v1/stream``: what a client states about its audio and its turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from parakeet_live.audio.formats import MAX_CHANNELS, MAX_RATE, MIN_RATE, DeclaredFormat, Encoding
from parakeet_live.dialects.options import EndpointingOptions, StreamOptions, explained
from parakeet_live.dialects.quoting import shown
from parakeet_live.formatting import FinalFormatter, UnknownFormatterError, make_final_formatter, split_names
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig

AUDIO_NAMES = ("encoding", "sample_rate", "channels")


class BadParameterError(ValueError):
    """The query of the URL asks for something impossible; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What the query says, with defaults for what it does not say."""

    audio: DeclaredFormat = field(default_factory=DeclaredFormat)
    endpointing: EndpointingConfig = DEFAULT
    formatter: FinalFormatter | None = None
    """Makes finals readable; None where raw text is all that is wanted."""


def parse_query(items: Iterable[tuple[str, str]], language: str) -> StreamRequest:
    """Query parameters to a request; ``language`` is the model's. Raises BadParameterError.

    Unknown parameters are refused, not ignored: a misspelt ``sample_rate`` would silently give wrong text.
    """
    possible = (*AUDIO_NAMES, *StreamOptions.model_fields)
    values: dict[str, str] = {}
    for name, value in items:
        if name not in possible:
            raise BadParameterError(
                f"unknown query parameter {shown(name)}; possible are {', '.join(possible[:-1])} and {possible[-1]}"
            )
        if name in values:
            raise BadParameterError(f"query parameter {name} is given more than once; give it once")
        values[name] = value
    return StreamRequest(_audio(values), _endpointing(values), _formatter(values, language))


def _audio(values: dict[str, str]) -> DeclaredFormat:
    encoding = None
    if "encoding" in values:
        if values["encoding"] not in tuple(Encoding):
            raise BadParameterError(
                f"encoding={shown(values['encoding'])} is not supported; use one of {', '.join(Encoding)}"
            )
        encoding = Encoding(values["encoding"])
    return DeclaredFormat(
        encoding,
        _integer(values, "sample_rate", MIN_RATE, MAX_RATE),
        _integer(values, "channels", 1, MAX_CHANNELS),
    )


def _integer(values: dict[str, str], name: str, low: int, high: int) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    # isdecimal() also holds for digits of other scripts; int() also takes signs and underscores.
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
    if not low <= number <= high:
        raise BadParameterError(
            f"{name}={shown(text)} is not possible; use a whole number from {low} to {high}"
        )
    return number


def _endpointing(values: dict[str, str]) -> EndpointingConfig:
    stated = {name: value for name, value in values.items() if name in EndpointingOptions.model_fields}
    try:
        return EndpointingOptions.model_validate_strings(stated).applied_to(DEFAULT)
    except ValidationError as error:
        raise BadParameterError(explained(error)) from error


def _formatter(values: dict[str, str], language: str) -> FinalFormatter | None:
    try:
        return make_final_formatter(split_names(values.get("format", "")), language)
    except UnknownFormatterError as error:
        raise BadParameterError(f"format={shown(values['format'])} is not possible: {error}") from error
