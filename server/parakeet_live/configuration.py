"""Where settings come from: flags win over the environment, that over the settings file, that over the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError, TomlConfigSettingsSource

from parakeet_live.settings import ENVIRONMENT_PREFIX, Settings
from parakeet_models.hub import DIRECTORY_VARIABLE

DEFAULT = "default"


class ConfigurationError(Exception):
    """A setting is not possible; the message names it, where it was given, and the remedy."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The effective settings, and for each the place it comes from: a flag, a variable, the file, or "default"."""

    settings: Settings
    origins: Mapping[str, str]
    unknown_variables: tuple[str, ...] = ()
    """Environment variables with our prefix that name no setting: a misspelling, or of another program."""


def flag_of(name: str) -> str:
    """The flag of a setting: ``--max-streams``."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """The environment variable of a setting: ``PARAKEET_LIVE_MAX_STREAMS``."""
    return ENVIRONMENT_PREFIX + name.upper()


def is_secret(name: str) -> bool:
    """True for a setting whose value is never shown, and which has no flag: everyone can read a process's arguments."""
    annotation = Settings.model_fields[name].annotation
    return SecretStr in (annotation, *get_args(annotation))


def load_configuration(flags: Mapping[str, Any] | None = None, file: Path | None = None) -> Configuration:
    """Settings from all places. ``flags`` holds only what was given. Raises ConfigurationError."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, DEFAULT)
    for name, value in _from_file(file).items():
        values[name], origins[name] = value, str(file)
    for name, value in _from_environment().items():
        values[name], origins[name] = value, variable_of(name)
    for name, value in (flags or {}).items():
        values[name], origins[name] = value, flag_of(name)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigurationError(_explain(error, origins)) from None
    return Configuration(settings, origins, _unknown_variables())


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    if not file.is_file():
        raise ConfigurationError(f"no such settings file: {file}; `parakeet-live config --toml` prints one")
    try:
        return TomlConfigSettingsSource(Settings, toml_file=file)()
    except (ValueError, OSError) as error:  # tomllib's error is a ValueError
        raise ConfigurationError(f"cannot read the settings file {file}: {error}") from error


def _from_environment() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error


def _unknown_variables() -> tuple[str, ...]:
    known = {variable_of(name) for name in Settings.model_fields} | {DIRECTORY_VARIABLE}
    return tuple(
        sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    )


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    problems = []
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else ""
        origin = origins.get(name, "")
        if problem["type"] == "extra_forbidden":
            close = get_close_matches(name, Settings.model_fields, n=1)
            hint = f"did you mean {close[0]}?" if close else "`parakeet-live config` lists all"
            problems.append(f"{origin}: there is no setting {name!r}; {hint}")
            continue
        text = problem["msg"].removeprefix("Value error, ")
        if name:
            shown = "" if is_secret(name) else f", not {str(problem['input'])[:80]!r}"
            text = f"{name} (from {origin}): {text[:1].lower()}{text[1:]}{shown}"
        if str(problem["input"]).startswith("tcp://"):
            text += "; this looks like a variable that Kubernetes sets: use enableServiceLinks: false"
        problems.append(text)
    return "; ".join(problems)
