"""Our engine against sherpa-onnx: same audio, same weights, one core, in one run, alternating round by round.

    OMP_NUM_THREADS=1 nice python -m benchmarks.peers --work DIRECTORY --json peers.json

Engine only: samples in, features, encoder, greedy decoding. Every stream gets 160 ms of audio a round. CPU time is
what the process used, so it holds on a machine that others use too; wall time does not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peer_engines import Engine, OurEngine, SherpaEngine
from benchmarks.peer_models import PeerModels, prepare
from parakeet_models.random_weights import RANDOM_SIZES
from parakeet_models.random_weights.signal import RATE, speech_like

STEP_SECONDS = 0.16
STEP_SAMPLES = int(STEP_SECONDS * RATE)
WARM_UP = 3
PACKAGES = ("onnxruntime", "sherpa-onnx", "numpy")


@dataclass(slots=True)
class Measurement:
    """One engine at one number of streams; seconds per step of the whole batch, one entry per round."""

    engine: str
    streams: int
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    tokens: int = 0

    @property
    def cost(self) -> float:
        """Median CPU seconds per step."""
        return statistics.median(self.cpu)


def measure(engines: dict[str, Engine], streams: int, rounds: int) -> list[Measurement]:
    """Drive every engine through the same audio, one round after the other."""
    found = [Measurement(name, streams) for name in engines]
    samples = STEP_SAMPLES * (rounds + WARM_UP)
    audio = np.stack([speech_like(samples / RATE, seed=stream) for stream in range(streams)])
    for engine in engines.values():
        engine.open(streams)
    for index in range(rounds + WARM_UP):
        chunk = list(audio[:, index * STEP_SAMPLES : (index + 1) * STEP_SAMPLES])
        for measurement, engine in zip(found, engines.values(), strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            steps = engine.step(chunk)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if index >= WARM_UP:
                if steps != 1:
                    raise RuntimeError(f"{measurement.engine}: {steps} steps in a round, expected one")
                measurement.cpu.append(cpu)
                measurement.wall.append(wall)
    for measurement, engine in zip(found, engines.values(), strict=True):
        measurement.tokens = engine.tokens
    return found


def load_engines(models: PeerModels, most_streams: int) -> dict[str, Engine]:
    """Every engine, named as in the table."""
    bins = models.bundles["fp32"].manifest.mel.bins
    # Ours first: it puts all memory that it finds on huge pages, which must not help the others.
    ours: dict[str, Engine] = {
        f"ours {precision}": OurEngine(bundle, most_streams) for precision, bundle in models.bundles.items()
    }
    peers: dict[str, Engine] = {
        f"sherpa-onnx {variant}": SherpaEngine(encoder, bins) for variant, encoder in models.encoders.items()
    }
    return peers | ours


def ratios(found: list[Measurement]) -> dict[int, dict[str, float]]:
    """By number of streams: how many times less CPU ours needs, and against which variant."""
    result = {}
    for streams in sorted({m.streams for m in found}):
        cost = {m.engine: m.cost for m in found if m.streams == streams}
        peers = {name: value for name, value in cost.items() if name.startswith("sherpa")}
        result[streams] = {
            "fp32 against fp32": cost["sherpa-onnx fp32"] / cost["ours fp32"],
            "int8 against its published int8": cost["sherpa-onnx int8 published"] / cost["ours int8"],
            "int8 against its best variant": min(peers.values()) / cost["ours int8"],
        }
    return result


def report(found: list[Measurement], console: Console) -> None:
    """Print both tables."""
    counts = sorted({m.streams for m in found})
    table = Table(title="CPU ms per 160 ms step, median (real-time streams per core)")
    best = Table(title="times less CPU")
    for each, first in ((table, "engine"), (best, "ours")):
        each.add_column(first)
        for streams in counts:
            each.add_column(f"{streams} streams", justify="right")
    for name in dict.fromkeys(m.engine for m in found):
        row = [m for m in found if m.engine == name]
        table.add_row(name, *(f"{m.cost * 1e3:.1f} ({m.streams * STEP_SECONDS / m.cost:.1f})" for m in row))
    by_streams = ratios(found)
    for name in by_streams[counts[0]]:
        best.add_row(name, *(f"{by_streams[streams][name]:.2f}" for streams in counts))
    console.print(table)
    console.print(best)


def document(found: list[Measurement], models: PeerModels, core: int) -> dict[str, object]:
    """What goes into the JSON file; times in milliseconds per step of the whole batch."""
    rows = []
    for m in found:
        row: dict[str, object] = {"engine": m.engine, "streams": m.streams, "tokens": m.tokens}
        for name, values in (("cpu", m.cpu), ("wall", m.wall)):
            row[f"{name}_ms_median"] = round(statistics.median(values) * 1e3, 3)
            row[f"{name}_ms_min"] = round(min(values) * 1e3, 3)
        rows.append(row)
    return {
        "weights": models.source,
        "rounds": len(found[0].cpu),
        "core": core,
        "load_average": os.getloadavg(),
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "measurements": rows,
        "times_less_cpu": ratios(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="directory for the exported models, kept between runs"
    )
    parser.add_argument("--nemo", type=Path, help="a .nemo archive (default: random weights)")
    parser.add_argument("--size", choices=sorted(RANDOM_SIZES), default="120m", help="size of random weights")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=20, help="measured rounds (default: %(default)s)")
    parser.add_argument("--core", type=int, default=0, help="the core to run on (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    arguments = parser.parse_args()
    console = Console()
    models = prepare(arguments.work, arguments.nemo, arguments.size)
    os.sched_setaffinity(0, {arguments.core})
    engines = load_engines(models, max(arguments.streams))
    found = [
        measurement
        for streams in arguments.streams
        for measurement in measure(engines, streams, arguments.rounds)
    ]
    report(found, console)
    console.print(f"weights: {models.source}; load average {os.getloadavg()[0]:.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(document(found, models, arguments.core), indent=2) + "\n")


if __name__ == "__main__":
    main()
