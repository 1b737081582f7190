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
from parakeet_models.bundle import Manifest


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
    model: Manifest | None,
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
        "linearity_8_64": linearity(runs),
        "memory_mb_per_extra_stream": memory_per_extra_stream(runs),
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


def table(runs: Sequence[Run]) -> Table:
    """A column for each run."""
    result = Table(box=None, pad_edge=False)
    result.add_column("streams", no_wrap=True)
    for run in runs:
        result.add_column(str(run.streams), justify="right", no_wrap=True)
    for label, cell in ROWS:
        result.add_row(label, *(cell(run) for run in runs))
    return result


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _three(values: Quantiles | None) -> str:
    if values is None or values.p50 is None:
        return "-"
    return " / ".join(_number(value, 0) for value in (values.p50, values.p95, values.p99))


def _mean(values: Quantiles | None) -> str:
    return _number(values.mean if values else None, 1)


ROWS: tuple[tuple[str, Callable[[Run], str]], ...] = (
    ("server CPU, core per stream", lambda run: _number(run.server_cpu_per_stream, 4)),
    ("generator CPU, core per stream", lambda run: _number(run.generator_cpu_per_stream, 4)),
    ("other processes, cores", lambda run: _number(run.other_cpu_cores, 2)),
    ("partial latency, ms p50/p95/p99", lambda run: _three(run.partial_latency_ms)),
    ("final latency, ms p50/p95/p99", lambda run: _three(run.final_latency_ms)),
    ("batch size, mean", lambda run: _mean(run.batch_size)),
    ("batch time, ms p50/p95/p99", lambda run: _three(run.batch_ms)),
    ("queue time, ms p50/p95/p99", lambda run: _three(run.queue_ms)),
    ("event loop delay, ms p50/p95/p99", lambda run: _three(run.loop_delay_ms)),
    (
        "event loop delay, ms max",
        lambda run: _number(run.loop_delay_ms.max if run.loop_delay_ms else None, 0),
    ),
    ("lanes busy, share", lambda run: _number(run.lane_load, 2)),
    ("send delay, ms p50/p95/p99", lambda run: _three(run.send_delay_ms)),
    ("largest backlog at the end, ms", lambda run: _number(run.largest_backlog_ms, 0)),
    ("growth of lag, ms", lambda run: _number(run.lag_growth_ms, 0)),
    ("memory, MB per stream", lambda run: _number(run.memory_mb_per_stream, 1)),
    ("memory, MB", lambda run: _number(run.rss_mb, 0)),
    ("failed streams", lambda run: str(run.failed_streams)),
    ("finals / words", lambda run: f"{run.finals} / {run.words}"),
    (
        "transcripts as alone",
        lambda run: "yes" if run.transcripts_equal else f"{run.streams_differing} differ",
    ),
)


def _processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
