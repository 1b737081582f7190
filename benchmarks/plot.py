"""Plots of `parakeet-live bench --json` files for docs/performance.md.

    python -m benchmarks.plot sweep.json more.json --out docs/plots

Writes streams-latency.svg and cost-streams.svg; each file is one series.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import typer
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from parakeet_live.bench.linear import LINEAR_RANGE, fit_line

ALLOWED_DEVIATION = 0.15
"""Deviation from linear cost that the project accepts."""
LATENCY_LIMIT_MS = 500
"""p95 of the partial latency that counts as live."""


def label(document: dict[str, Any]) -> str:
    """Name of a series."""
    model = document["model"]
    return f"{model['name']} {model['weights']}" if model else str(document["settings"]["url"])


def plot_latency(axes: Axes, documents: list[dict[str, Any]]) -> None:
    """Latency of partials and finals against streams."""
    for number, document in enumerate(documents):
        runs = sorted(document["runs"], key=lambda run: run["streams"])
        colour, streams = f"C{number}", [run["streams"] for run in runs]
        for kind, share, style in (
            ("partial", "p50", ":"),
            ("partial", "p95", "-"),
            ("partial", "p99", "-."),
            ("final", "p95", "--"),
        ):
            # A run without results has a gap: matplotlib leaves NaN out.
            values = [run[f"{kind}_latency_ms"][share] for run in runs]
            heights = [float("nan") if value is None else value for value in values]
            axes.plot(
                streams,
                heights,
                style,
                marker="o",
                ms=3,
                color=colour,
                label=f"{label(document)}: {kind} {share}",
            )
    axes.axhline(LATENCY_LIMIT_MS, color="grey", lw=0.8)
    axes.set(xlabel="live streams", ylabel="audio sent to text received, ms", ylim=(0, None))
    _streams_axis(axes)
    axes.legend(fontsize="small")


def plot_cost(total: Axes, deviation: Axes, documents: list[dict[str, Any]]) -> None:
    """Server processor time against streams, and how far it is from a line through the origin."""
    for number, document in enumerate(documents):
        runs = sorted(document["runs"], key=lambda run: run["streams"])
        points = [(run["streams"], run["server_cpu_per_stream"]) for run in runs]
        known = [(n, n * each) for n, each in points if each is not None]
        if not known:
            continue
        colour = f"C{number}"
        total.plot(*zip(*known, strict=True), "o", color=colour, label=label(document))
        if line := fit_line(points):
            most = max(n for n, _ in known)
            total.plot([0, most], [0, line.slope * most], "-", lw=0.8, color=colour)
            deviation.plot(*zip(*line.deviations, strict=True), "o-", color=colour)
    total.set(ylabel="server, cores", xlabel="live streams", xlim=(0, None), ylim=(0, None))
    total.legend(fontsize="small")
    deviation.axhspan(-ALLOWED_DEVIATION, ALLOWED_DEVIATION, color="grey", alpha=0.15, lw=0)
    deviation.axhline(0, color="grey", lw=0.8)
    first, last = LINEAR_RANGE
    deviation.set(xlabel="live streams", ylabel=f"from the line, {first} to {last}")
    deviation.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _streams_axis(deviation)


def _streams_axis(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def main(
    files: Annotated[list[Path], typer.Argument(help="JSON files of parakeet-live bench.")],
    out: Annotated[Path, typer.Option(help="Directory of the plots.")] = Path("docs/plots"),
) -> None:
    """Draw latency and cost against the number of streams."""
    mpl.use("svg")
    # The same figures give the same file, to the byte.
    mpl.rcParams.update({"svg.hashsalt": "parakeet-live", "axes.grid": True, "grid.alpha": 0.3})
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    out.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    plot_latency(axes, documents)
    figure.savefig(out / "streams-latency.svg", metadata={"Date": None})
    figure, (total, deviation) = pyplot.subplots(
        2, 1, figsize=(7, 6), height_ratios=(2, 1), layout="constrained"
    )
    plot_cost(total, deviation, documents)
    figure.savefig(out / "cost-streams.svg", metadata={"Date": None})


if __name__ == "__main__":
    typer.run(main)
