"""Counts the results of one preset: by pause, by condition, and words where nobody spoke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from parakeet_live.evaluation.endpointing.judge import StreamResult, TurnResult

PERCENTILES = (5, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class Delay:
    """Milliseconds of audio after the true end of speech; None where there is none to count."""

    count: int
    p5: float | None = None
    p25: float | None = None
    p50: float | None = None
    p75: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Counts over the turns of one pause length or one condition."""

    name: str
    turns: int
    early: int
    eager_early: int
    missed: int
    unheard: int
    final_delay_ms: Delay
    eager_delay_ms: Delay
    reasons: dict[str, int]
    """Finals that ended a turn, by their reason."""


@dataclass(frozen=True, slots=True)
class QuietRow:
    """Words where nobody spoke."""

    name: str
    minutes: float
    words: int

    @property
    def words_per_minute(self) -> float:
        return self.words / self.minutes if self.minutes else 0.0


@dataclass(frozen=True, slots=True)
class PresetSummary:
    """Everything about one preset."""

    preset: str
    settings: dict[str, Any]
    """The effective numbers of the preset."""
    pauses: tuple[Row, ...]
    """By length of the pause inside the utterance; the name is the length in milliseconds."""
    floors: tuple[Row, ...]
    """Utterances as recorded, by what lay under them."""
    backgrounds: tuple[QuietRow, ...]
    """Sound without speech."""
    between: QuietRow
    """Between the turns of all streams with speech."""
    overall: Row
    """All turns of ``pauses`` and ``floors``."""


def summarise(preset: str, settings: dict[str, Any], results: Sequence[StreamResult]) -> PresetSummary:
    """Counts over all streams of one preset, in the order in which they were planned."""
    pauses = [result for result in results if result.stream.group == "pauses"]
    floors = [result for result in results if result.stream.group == "floors"]
    lengths = sorted({turn.turn.pause_ms for result in pauses for turn in result.turns})
    names = dict.fromkeys(result.stream.floor.name for result in floors)
    quiet = [result for result in results if result.stream.group == "backgrounds"]
    sounds = dict.fromkeys(result.stream.floor.name for result in quiet)
    return PresetSummary(
        preset,
        settings,
        tuple(_row(str(length), _turns(pauses, pause_ms=length)) for length in lengths),
        tuple(_row(name, _turns(_on(floors, name))) for name in names),
        tuple(_quiet(name, _on(quiet, name)) for name in sounds),
        _quiet("between turns", [*pauses, *floors]),
        _row("all", _turns([*pauses, *floors])),
    )


def preset_data(summary: PresetSummary) -> dict[str, Any]:
    """A summary as plain data for JSON, with rates beside the counts."""
    data = asdict(summary)
    for row in (*data["pauses"], *data["floors"], data["overall"]):
        row |= {
            f"{name}_rate": row[name] / row["turns"] for name in ("early", "eager_early", "missed", "unheard")
        }
    quiet = [*summary.backgrounds, summary.between]
    for row, minutes in zip((*data["backgrounds"], data["between"]), quiet, strict=True):
        row["words_per_minute"] = minutes.words_per_minute
    return data


def _on(results: Sequence[StreamResult], floor: str) -> list[StreamResult]:
    return [result for result in results if result.stream.floor.name == floor]


def _turns(results: Sequence[StreamResult], pause_ms: int | None = None) -> list[TurnResult]:
    return [
        turn
        for result in results
        for turn in result.turns
        if pause_ms is None or turn.turn.pause_ms == pause_ms
    ]


def _row(name: str, turns: Sequence[TurnResult]) -> Row:
    return Row(
        name=name,
        turns=len(turns),
        early=sum(turn.early for turn in turns),
        eager_early=sum(turn.eager_early for turn in turns),
        missed=sum(turn.missed for turn in turns),
        unheard=sum(turn.unheard for turn in turns),
        final_delay_ms=_delay(turn.final_delay_ms for turn in turns),
        eager_delay_ms=_delay(turn.eager_delay_ms for turn in turns),
        reasons=dict(Counter(turn.reason.value for turn in turns if turn.reason is not None)),
    )


def _quiet(name: str, results: Sequence[StreamResult]) -> QuietRow:
    minutes = sum(result.quiet_ms for result in results) / 60_000
    return QuietRow(name, minutes, sum(result.false_words for result in results))


def _delay(values: Iterable[int | None]) -> Delay:
    found = [value for value in values if value is not None]
    if not found:
        return Delay(0)
    return Delay(len(found), *(round(float(value), 1) for value in np.percentile(found, PERCENTILES)))
