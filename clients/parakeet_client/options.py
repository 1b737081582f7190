"""What a client may ask of a session beside its audio: when utterances end, and how finals are made readable.

Only names and types are checked here. Which presets and formatters there are, and which numbers are possible, the
server knows, and says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast


class Options(TypedDict, total=False):
    """What is not stated is as the server has it: the preset ``conversation``, raw text. docs/endpointing.md."""

    endpointing: str
    """A preset: ``conversation``, ``dictation``, ``telephone_digits`` or ``command``; numbers take precedence."""
    eou_silence_ms: int
    eou_hold_ms: int
    silence_ms: int
    silence_hold_ms: int
    max_utterance_ms: int
    no_audio_ms: int
    vad: bool
    speech_started: bool
    format: str | Sequence[str]
    """Formatters of finals: ``("numerals", "punctuation")``, or the same in one string with commas."""


_TYPES: dict[str, tuple[type, str]] = {
    "endpointing": (str, "a string"),
    **{name: (int, "a whole number") for name in Options.__annotations__ if name.endswith("_ms")},
    "vad": (bool, "True or False"),
    "speech_started": (bool, "True or False"),
    "format": (str, "a string or a sequence of strings"),
}


def as_fields(options: Mapping[str, Any]) -> dict[str, str | int | bool]:
    """Options as the protocol has them. Raises TypeError for a name or type that no server knows."""
    return {name: _field(name, value) for name, value in options.items()}


def as_query(options: Mapping[str, Any]) -> dict[str, str]:
    """The same for the query of a URL."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in as_fields(options).items()
    }


def _field(name: str, value: Any) -> str | int | bool:
    if name not in _TYPES:
        raise TypeError(f"there is no option {name!r}; possible are {', '.join(_TYPES)}")
    if name == "format" and isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return value if isinstance(value, str) else ",".join(value)
    wanted, words = _TYPES[name]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise TypeError(f"{name}={value!r} is not possible: use {words}")
    return cast("str | int | bool", value)
