"""What the project asks of each preset, and whether a summary keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parakeet_live.evaluation.endpointing.summary import PresetSummary

PAUSES_KEPT_MS = {"conversation": 500, "dictation": 1500, "telephone_digits": 1000}
"""Longest pause inside an utterance at which a preset may cut it in EARLY_PERCENT of the cases at most."""
EARLY_PERCENT = 1.0
MISSED_PERCENT = 0.5
"""Missed ends, at every pause length and in every condition."""
CONVERSATION_DELAYS_MS = {"final p50": 800.0, "final p95": 1300.0, "eager p50": 400.0}
"""Delays of the preset ``conversation`` over all turns."""
WORDS_PER_MINUTE = 1.0
"""False words in noise and music; in digital silence there may be none."""
SILENCE = "digital silence"


@dataclass(frozen=True, slots=True)
class Target:
    """One thing asked for: kept where ``value`` is at most ``limit``; without a value it is not."""

    what: str
    value: float | None
    limit: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.value is not None and self.value <= self.limit


def targets(summary: PresetSummary) -> list[Target]:
    """Everything asked of this preset that the summary has a figure for."""
    return [*_early(summary), *_missed(summary), *_delays(summary), *_false_words(summary)]


def _early(summary: PresetSummary) -> Iterator[Target]:
    for row in summary.pauses:
        if int(row.name) <= PAUSES_KEPT_MS.get(summary.preset, -1):
            yield Target(f"early, pause {row.name} ms", 100 * row.early / row.turns, EARLY_PERCENT, "%")


def _missed(summary: PresetSummary) -> Iterator[Target]:
    rows = [
        *((f"pause {row.name} ms", row) for row in summary.pauses),
        *((row.name, row) for row in summary.floors),
    ]
    if rows:
        name, worst = max(rows, key=lambda item: item[1].missed / item[1].turns)
        yield Target(f"missed, most ({name})", 100 * worst.missed / worst.turns, MISSED_PERCENT, "%")


def _delays(summary: PresetSummary) -> Iterator[Target]:
    if summary.preset == "conversation":
        final, eager = summary.overall.final_delay_ms, summary.overall.eager_delay_ms
        for (what, limit), value in zip(
            CONVERSATION_DELAYS_MS.items(), (final.p50, final.p95, eager.p50), strict=True
        ):
            yield Target(what, value, limit, "ms")


def _false_words(summary: PresetSummary) -> Iterator[Target]:
    for row in summary.backgrounds:
        limit = 0.0 if row.name == SILENCE else WORDS_PER_MINUTE
        yield Target(f"false words, {row.name}", row.words_per_minute, limit, "a minute")
