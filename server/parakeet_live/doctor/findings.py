"""What a check found."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

COMMAND_SECONDS = 10


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing, nothing to do."""
    WARNING = "warning"
    """It works, but not as well as it could."""
    PROBLEM = "problem"
    """Live recognition does not work here as things are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``remedy`` says what to do about a warning or a problem."""

    subject: str
    value: str
    level: Level = Level.OK
    remedy: str = ""


Run = Callable[[Sequence[str]], str]
"""Runs a command of the system and returns its standard output, empty where there is no such command."""


def run_command(command: Sequence[str]) -> str:
    """The real :data:`Run`. Output counts also of a command that failed: sysctl prints the names it knows."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout
