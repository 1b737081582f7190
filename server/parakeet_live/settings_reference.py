"""The reference of all settings: ``python -m parakeet_live.settings_reference > docs/settings.md``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, get_args

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from parakeet_live.settings import GROUPS

INTRODUCTION = """\
# Settings

`parakeet-live serve` takes every setting as a flag (`--max-streams 8`), as an environment variable
(`PARAKEET_LIVE_MAX_STREAMS=8`), or as a line of a TOML file (`max_streams = 8`) that `--config FILE` names. Flags
win over the environment, the environment over the file, the file over the defaults. A value that is not possible, or a
line in the file that names no setting, is an error; the server then does not start.

`parakeet-live config` takes the same flags and prints every effective value with its origin; `--toml` prints it as a
settings file, `--json` for programs. Lists are given by a repeated flag, or in the environment with commas between the
values. Secrets have no flag, because everyone on a machine can read the arguments of its processes; they are shown
masked.

This file is generated from the program: `python -m parakeet_live.settings_reference > docs/settings.md`.
"""


def reference_text() -> str:
    """docs/settings.md."""
    return INTRODUCTION + "".join(_group(group.__doc__ or "", group.model_fields) for group in GROUPS)


def _group(title: str, fields: dict[str, FieldInfo]) -> str:
    rows = [f"\n## {title}\n", "| setting | default | what it is |", "|---|---|---|"]
    for name, field in fields.items():
        rows.append(f"| `{name}` | {_default(field.default)} | {meaning(field)} |")
    return "\n".join(rows) + "\n"


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`"


def meaning(field: FieldInfo) -> str:
    """What a setting is, in Markdown, with the values that are possible."""
    possible = []
    for bound in field.metadata:
        match bound:
            case Ge(ge):
                possible.append(f"at least {ge}")
            case Le(le):
                possible.append(f"at most {le}")
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            possible.append(f"one of {', '.join(kind)}")
    text = field.description or ""
    if not possible:
        return text
    limits = ", ".join(possible)
    return f"{text} *{limits[0].upper()}{limits[1:]}.*"


if __name__ == "__main__":
    print(reference_text(), end="")
