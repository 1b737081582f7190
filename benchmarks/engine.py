"""The engine alone: no sockets, no sessions, one core. Time of a step by batch size and step size.

    python -m benchmarks.engine --model BUNDLE_DIR --json engine.json

A step is everything between the mel frames of a batch and its tokens: gathering the caches, the encoder, writing the
caches back, decoding. The configurations take turns, so that a disturbance of the machine hits all of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from parakeet_live.bench.report import machine
from parakeet_live.bench.results import Quantiles, quantiles
from parakeet_live.bench.tracks import read_recordings
from parakeet_live.cli.bundles import ModelOption, choose_bundle
from parakeet_live.demo import RECORDING
from parakeet_live.engine.backend import StepInput
from parakeet_live.engine.onnx import OnnxBackend
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import Bundle

SPEECH_SECONDS = 6.0
"""Speech of each stream, repeated as often as needed."""
WARM_UP_STEPS = 2
FRAME_SECONDS = 0.08
"""Audio of one encoder frame."""


class Stopwatch:
    """Adds up the processor time that calls of one method take."""

    def __init__(self, owner: Any, method: str) -> None:
        self.seconds = 0.0
        self._call: Callable[..., Any] = getattr(owner, method)
        setattr(owner, method, self._timed)

    def _timed(self, *arguments: Any) -> Any:
        started = time.process_time()
        result = self._call(*arguments)
        self.seconds += time.process_time() - started
        return result


@dataclass(slots=True)
class Samples:
    """Milliseconds of each step of one configuration; encoder and decoder are parts of the processor time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    encoder: list[float] = field(default_factory=list)
    decoder: list[float] = field(default_factory=list)
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one configuration."""

    batch: int
    step_frames: int
    wall_ms: Quantiles
    cpu_ms: Quantiles
    """Of which the next three are parts."""
    encoder_ms: Quantiles
    decoder_ms: Quantiles
    host_ms: Quantiles
    """The rest: copies between slots and batch, Python."""
    streams_per_core: float
    """Real-time streams that one core carries, by the median processor time of a step."""
    streams_per_core_wall: float
    """The same by the median wall time, which other processes on the core lengthen."""
    tokens_per_second: float
    """Tokens for each second of audio: what decoding had to do."""


class Engine:
    """A backend with a stopwatch at each of its two halves."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        self._backend = OnnxBackend(bundle, slots)
        # There is no way to see the halves from outside, and production code needs none.
        self._encoder = Stopwatch(self._backend._encoder, "run")
        self._decoder = Stopwatch(self._backend._decoder, "decode")
        self._slots = [self._backend.open() for _ in range(slots)]

    def run(self, speech: list[list[StepInput]], batch: int, seconds: float, samples: Samples) -> None:
        """Steps of ``batch`` streams for about ``seconds``, after a few uncounted ones."""
        steps, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until or steps <= WARM_UP_STEPS:
            inputs = [
                replace(stream[steps % len(stream)], slot=slot)
                for stream, slot in zip(speech[:batch], self._slots, strict=False)
            ]
            self._encoder.seconds = self._decoder.seconds = 0.0
            wall, cpu = time.perf_counter(), time.process_time()
            emissions = self._backend.step(inputs)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            steps += 1
            if steps > WARM_UP_STEPS:
                samples.wall.append(1000 * wall)
                samples.cpu.append(1000 * cpu)
                samples.encoder.append(1000 * self._encoder.seconds)
                samples.decoder.append(1000 * self._decoder.seconds)
                samples.tokens += sum(map(len, emissions))


def speech_steps(bundle: Bundle, streams: int, frames: int) -> list[list[StepInput]]:
    """Steps of recorded speech for each stream, each from another place of the recording."""
    (recording,) = read_recordings([RECORDING])
    vocabulary = Vocabulary.load(bundle)
    rng = np.random.default_rng(0)
    result = []
    for _ in range(streams):
        session = Session(bundle.manifest, vocabulary)
        samples = np.roll(recording, int(rng.integers(len(recording)))).astype(np.float32) / 32768
        session.push(samples[: int(SPEECH_SECONDS * bundle.manifest.mel.sample_rate)])
        steps = []
        while session.ready_frames >= frames:
            steps.append(session.next_step(0, frames))
            session.apply([])
        result.append(steps[1:])  # the first step of a stream is special: padding in front
    return result


def summarise(batch: int, frames: int, samples: Samples) -> Result:
    rest = np.array(samples.cpu) - samples.encoder - samples.decoder
    audio = batch * frames * FRAME_SECONDS
    return Result(
        batch=batch,
        step_frames=frames,
        wall_ms=quantiles(samples.wall),
        cpu_ms=quantiles(samples.cpu),
        encoder_ms=quantiles(samples.encoder),
        decoder_ms=quantiles(samples.decoder),
        host_ms=quantiles(rest),
        streams_per_core=round(1000 * audio / float(np.median(samples.cpu)), 1),
        streams_per_core_wall=round(1000 * audio / float(np.median(samples.wall)), 1),
        tokens_per_second=round(samples.tokens / (audio * len(samples.wall)), 2),
    )


def table(results: list[Result]) -> Table:
    view = Table(box=None, pad_edge=False)
    columns = (
        "batch",
        "frames",
        "wall ms",
        "CPU ms",
        "encoder",
        "decoder",
        "host",
        "streams/core",
        "by wall",
    )
    for column in columns:
        view.add_column(column, justify="right")
    for r in results:
        medians = (r.wall_ms.p50, r.cpu_ms.p50, r.encoder_ms.p50, r.decoder_ms.p50, r.host_ms.p50)
        carried = (r.streams_per_core, r.streams_per_core_wall)
        view.add_row(
            str(r.batch),
            str(r.step_frames),
            *(f"{value:.2f}" for value in medians),
            *(f"{value:.1f}" for value in carried),
        )
    return view


def main(
    model: ModelOption = None,
    batches: Annotated[str, typer.Option(metavar="N,N,...", help="Batch sizes.")] = "1,4,8,16,32",
    frames: Annotated[
        str, typer.Option(metavar="N,N,...", help="Step sizes in encoder frames of 80 ms.")
    ] = "2,4",
    seconds: Annotated[float, typer.Option(help="Time of one configuration in one round.")] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="How often the configurations take turns.")] = 5,
    core: Annotated[int, typer.Option(min=0, help="Core to run on, where the system can pin.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write every figure to FILE.")
    ] = None,
) -> None:
    """Time of an engine step by batch size and step size, on one core."""
    where = machine()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    bundle = choose_bundle(model)
    sizes = [int(number) for number in batches.split(",")]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    engine = Engine(bundle, max(sizes))
    samples = {(batch, step): Samples() for step in map(int, frames.split(",")) for batch in sizes}
    speech = {step: speech_steps(bundle, max(sizes), step) for _, step in samples}
    for _ in range(rounds):
        for (batch, step), collected in samples.items():
            engine.run(speech[step], batch, seconds, collected)
    results = [summarise(batch, step, collected) for (batch, step), collected in samples.items()]
    Console().print(table(results))
    if json_file:
        document = {
            "format": 1,
            "started": started,
            "machine": where,
            "model": bundle.manifest.model_dump(mode="json", exclude={"files"}),
            "settings": {"seconds": seconds, "rounds": rounds, "core": core},
            "results": [asdict(result) for result in results],
        }
        json_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
