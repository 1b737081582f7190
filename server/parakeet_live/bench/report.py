"""Results as JSON and as a table, and the figures that take several runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from parakeet_live.bench.linear import fit_line
from parakeet_live.bench.results import Quantiles
from parakeet_live.bench.run import Run
from parakeet_live.engine.cores import usable_cores
from parakeet_models.bundle import ModelInfo


def linearity(runs: Sequence[Run]) -> float | None:
    """Largest relative deviation of cost from a line through the origin, 8 to 64 streams."""
    line = fit_line([(run.streams, run.server_cpu_per_stream) for run in runs])
    return round(line.largest_deviation, 4) if line else None


def memory_per_extra_stream(runs: Sequence[Run]) -> float | None:
    """Growth of resident memory from the fewest to the most streams, for each stream more, in 10^6 bytes."""
    known = sorted((run.streams, run.rss_mb) for run in runs if run.rss_mb is not None)
    if not known or known[0][0] == known[-1][0]:
        return None
    (fewest, low), (most, high) = known[0], known[-1]
    return round((high - low) / (most - fewest), 2)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor_name(),
        "logical_cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "python": platform.python_version(),
        "parakeet_live": version("parakeet-live"),
        "onnxruntime": version("onnxruntime"),
    }


def document(
    runs: Sequence[Run],
    *,
    started: str,
    model: ModelInfo | None,
    settings: dict[str, Any],
    max_streams: int | None,
) -> dict[str, Any]:
    """The JSON document of one ``bench``; one format for single runs, sweeps and searches."""
    return {
        "format": 1,
        "started": started,
        "machine": machine(),
        "model": model.model_dump(mode="json", exclude={"files"}) if model else None,
        "settings": settings,
        "runs": [asdict(run) for run in runs],
        "max_streams": max_streams,
        # A search ends among runs that are not held, whose cost and memory say nothing about the others.
        "linearity_8_64": linearity(runs) if max_streams is None else None,
        "memory_mb_per_extra_stream": memory_per_extra_stream(runs) if max_streams is None else None,
    }


def conclusions(result: dict[str, Any]) -> list[str]:
    """What a document says beyond its single runs, as lines for people."""
    lines = []
    if (streams := result["max_streams"]) is not None:
        limit = result["settings"]["limit_ms"]
        lines.append(
            f"largest number of streams held with p95 partial latency under {limit:.0f} ms: {streams}"
        )
    if (deviation := result["linearity_8_64"]) is not None:
        lines.append(
            f"largest deviation of cost from a line through the origin, 8 to 64 streams: {deviation:.1%}"
        )
    if (memory := result["memory_mb_per_extra_stream"]) is not None:
        lines.append(f"memory of each extra stream: {memory:.1f} MB")
    return lines


def tables(runs: Sequence[Run], width: int) -> list[Table]:
    """A column for each run, in as many tables as ``width`` characters demand."""
    columns = max(1, (width - LABEL_WIDTH) // COLUMN_WIDTH)
    return [_table(runs[at : at + columns]) for at in range(0, len(runs), columns)]


def _table(runs: Sequence[Run]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("streams", no_wrap=True, width=LABEL_WIDTH)
    for run in runs:
        table.add_column(str(run.streams), justify="right", no_wrap=True, min_width=COLUMN_WIDTH - 2)
    for label, cell in ROWS:
        table.add_row(label, *(cell(run) for run in runs))
    return table


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _quantile_rows(
    label: str, of: Callable[[Run], Quantiles | None]
) -> list[tuple[str, Callable[[Run], str]]]:
    """A row for each quantile worth reading; the label stands at the first."""

    def row(share: str) -> Callable[[Run], str]:
        return lambda run: _number(getattr(of(run), share, None))

    return [
        (f"{label} p50", row("p50")),
        *((share.rjust(len(label) + 4), row(share)) for share in ("p95", "p99")),
    ]


LABEL_WIDTH = 33
COLUMN_WIDTH = 9
ROWS: tuple[tuple[str, Callable[[Run], str]], ...] = (
    ("server CPU, core per stream", lambda run: _number(run.server_cpu_per_stream, 4)),
    ("generator CPU, core per stream", lambda run: _number(run.generator_cpu_per_stream, 4)),
    ("other processes, cores", lambda run: _number(run.other_cpu_cores, 2)),
    *_quantile_rows("partial latency, ms", lambda run: run.partial_latency_ms),
    *_quantile_rows("final latency, ms", lambda run: run.final_latency_ms),
    ("batch size, mean", lambda run: _number(run.batch_size.mean if run.batch_size else None, 1)),
    *_quantile_rows("batch time, ms", lambda run: run.batch_ms),
    *_quantile_rows("queue time, ms", lambda run: run.queue_ms),
    *_quantile_rows("event loop delay, ms", lambda run: run.loop_delay_ms),
    ("event loop delay, ms max", lambda run: _number(run.loop_delay_ms.max if run.loop_delay_ms else None)),
    ("lanes busy, share", lambda run: _number(run.lane_load, 2)),
    ("send delay, ms p99", lambda run: _number(run.send_delay_ms.p99)),
    ("largest backlog at the end, ms", lambda run: _number(run.largest_backlog_ms)),
    ("growth of lag, ms", lambda run: _number(run.lag_growth_ms)),
    ("memory, MB per stream", lambda run: _number(run.memory_mb_per_stream, 1)),
    ("memory, MB", lambda run: _number(run.rss_mb)),
    ("failed streams", lambda run: str(run.failed_streams)),
    ("finals", lambda run: str(run.finals)),
    ("words", lambda run: str(run.words)),
    ("transcripts as alone", lambda run: "yes" if run.transcripts_equal else f"{run.streams_differing} not"),
)


def _processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
