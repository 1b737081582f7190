"""Prints a summary as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.evaluation.summary import Delays, Group, Summary

NONE = "-"
"""Shown where a figure does not exist."""
FILE_WIDTH = 120
"""Characters a line where the output is no terminal."""


def print_report(summary: Summary) -> None:
    """By kind, then by speaker, then the speed; to standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH  # a file or pipe has no width of its own; 80 would break the tables
    model, padding, speed = summary.model, summary.padding, summary.speed
    console.print(_table(f"{model.name}, by kind", [*summary.kinds, summary.overall]))
    console.print(_table(f"{model.name}, by kind and speaker", summary.speakers))
    filling = "digital silence" if padding.noise_dbfs is None else f"noise at {padding.noise_dbfs:g} dBFS"
    console.print(
        f"Each recording was followed by {padding.milliseconds} ms of {filling}. "
        "Eager ends are the model's, finals commit them; after speech: p50 / p95 in milliseconds of audio."
    )
    console.print(f"{model.name}: {model.bytes / 1e6:.1f} MB, loaded in {model.load_seconds:.2f} s")
    console.print(
        f"{speed.audio_seconds:.0f} s of audio in {speed.wall_seconds:.1f} s: "
        f"{speed.times_real_time:.1f} x real time, {speed.cpu_times_real_time:.1f} x by CPU time"
    )


def _table(title: str, groups: Sequence[Group]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(title.rpartition("by ")[2], no_wrap=True)
    for heading in ("clips", "words", "WER"):
        table.add_column(heading, justify="right")
    for view in ("eager", "final"):
        for heading in ("missed", "early", "after speech"):
            table.add_column(f"{view}\n{heading}", justify="right", no_wrap=True)
    for group in groups:
        table.add_row(
            group.name,
            str(group.clips),
            str(group.words.reference_words),
            _percent(group.words.wer),
            *(
                text
                for ends in (group.eager, group.final)
                for text in (
                    _percent(ends.missed / group.clips),
                    _percent(ends.early / group.clips),
                    _delays(ends.delay_from_speech_ms),
                )
            ),
        )
    return table


def _percent(rate: float | None) -> str:
    return NONE if rate is None else f"{100 * rate:.1f} %"


def _delays(delays: Delays) -> str:
    values = (delays.p50, delays.p95)
    return " / ".join(NONE if value is None else f"{value:.0f}" for value in values)
