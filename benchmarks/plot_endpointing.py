"""Plot of a `parakeet-live eval --endpointing --json` file for docs/endpointing-benchmark.md.

    python -m benchmarks.plot_endpointing endpointing.json --out docs/plots

Writes endpointing.svg: how often each preset cuts an utterance in a pause, and when ends come after the speech.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import typer
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter


def plot_cuts(axes: Axes, presets: list[dict[str, Any]]) -> None:
    """Share of utterances cut, against the length of the pause inside them."""
    for preset in presets:
        lengths = [int(row["name"]) for row in preset["pauses"]]
        axes.plot(
            lengths, [row["early_rate"] for row in preset["pauses"]], "o-", ms=4, label=preset["preset"]
        )
    rows = presets[0]["pauses"]
    axes.plot(
        [int(row["name"]) for row in rows],
        [row["eager_early_rate"] for row in rows],
        "--",
        color="grey",
        label="eou of the model",
    )
    axes.set(
        xlabel="pause inside the utterance, ms", ylabel="ended before the speech was over", ylim=(-0.03, 1.03)
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.legend(fontsize="small")


def plot_delays(axes: Axes, presets: list[dict[str, Any]]) -> None:
    """Boxes from the 25th to the 75th percentile with the median, whiskers from the 5th to the 95th."""
    boxes = []
    for preset in presets:
        for view in ("eager", "final"):
            delay = preset["overall"][f"{view}_delay_ms"]
            if delay["count"]:
                boxes.append(
                    {
                        "label": f"{preset['preset']}, {'eou' if view == 'eager' else view}",
                        "whislo": delay["p5"],
                        "q1": delay["p25"],
                        "med": delay["p50"],
                        "q3": delay["p75"],
                        "whishi": delay["p95"],
                    }
                )
    axes.bxp(boxes[::-1], orientation="horizontal", showfliers=False)
    axes.set(xlabel="after the true end of speech, ms of audio", xlim=(0, None))


def main(
    file: Annotated[Path, typer.Argument(help="JSON file of parakeet-live eval --endpointing.")],
    out: Annotated[Path, typer.Option(help="Directory of the plot.")] = Path("docs/plots"),
) -> None:
    """Draw early ends against pauses, and delays of every preset."""
    mpl.use("svg")
    # The same figures give the same file, to the byte.
    mpl.rcParams.update({"svg.hashsalt": "parakeet-live", "axes.grid": True, "grid.alpha": 0.3})
    document = json.loads(file.read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    figure, (cuts, delays) = pyplot.subplots(2, 1, figsize=(7, 7), layout="constrained")
    plot_cuts(cuts, document["presets"])
    plot_delays(delays, document["presets"])
    figure.savefig(out / "endpointing.svg", metadata={"Date": None})


if __name__ == "__main__":
    typer.run(main)
