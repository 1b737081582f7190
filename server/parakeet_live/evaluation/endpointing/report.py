"""Prints the benchmark's figures as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.evaluation.endpointing.summary import Delay, PresetSummary, QuietRow, Row
from parakeet_live.evaluation.endpointing.targets import targets
from parakeet_live.evaluation.report import FILE_WIDTH, NONE


def print_report(summaries: Sequence[PresetSummary], model: str) -> None:
    """Tables for each preset, then what was asked for; to standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    for summary in summaries:
        console.print(f"\n[bold]{model}, {summary.preset}[/]")
        console.print(_turns("pause inside, ms", summary.pauses))
        console.print(_turns("floor", [*summary.floors, summary.overall]))
        console.print(_quiet([*summary.backgrounds, summary.between]))
        console.print(_targets(summary))
    console.print(
        "early: cut before the speech was over. eager early: the model claimed an end before that. missed: open when "
        "the next turn began. unheard: no word recognised. Delays: p50 / p95 in milliseconds of audio after the true "
        "end of speech."
    )


def _turns(heading: str, rows: Sequence[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(heading, no_wrap=True)
    for column in ("turns", "early", "eager early", "missed", "unheard", "eager after", "final after"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            str(row.turns),
            *(_share(count, row.turns) for count in (row.early, row.eager_early, row.missed, row.unheard)),
            _delay(row.eager_delay_ms),
            _delay(row.final_delay_ms),
        )
    return table


def _quiet(rows: Sequence[QuietRow]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("no speech", no_wrap=True)
    for column in ("minutes", "words", "words a minute"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.name, f"{row.minutes:.1f}", str(row.words), f"{row.words_per_minute:.2f}")
    return table


def _targets(summary: PresetSummary) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("asked for", no_wrap=True)
    for column in ("value", "at most"):
        table.add_column(column, justify="right")
    table.add_column("")
    for target in targets(summary):
        value = NONE if target.value is None else f"{target.value:.4g} {target.unit}"
        table.add_row(
            target.what, value, f"{target.limit:g} {target.unit}", "kept" if target.kept else "[red]missed[/]"
        )
    return table


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)"


def _delay(delay: Delay) -> str:
    return NONE if delay.p50 is None else f"{delay.p50:.0f} / {delay.p95:.0f}"
