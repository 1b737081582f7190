"""``parakeet-live models convert``: a checkpoint becomes a bundle."""

from __future__ import annotations

import time
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.audio.files import read_blocks
from parakeet_live.cli.console import fail, notes
from parakeet_live.demo import RECORDING

if TYPE_CHECKING:
    from parakeet_models.bundle import Bundle

EXTRA_MODULES = frozenset({"google", "onnx", "safetensors", "torch", "yaml"})
"""What the extra ``convert`` brings."""


class Target(StrEnum):
    """What a bundle is made for."""

    ONNX = "onnx"


class StoredPrecision(StrEnum):
    """How weights are stored; :data:`parakeet_models.bundle.Precision` as a command-line choice."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"


class RandomSize(StrEnum):
    """Networks that can be made of random weights."""

    FULL = "120m"
    TINY = "tiny"


def convert_model(
    out: Annotated[Path, typer.Option("--out", metavar="BUNDLE_DIR", help="Directory to create.")],
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE.nemo", help="A NeMo checkpoint archive.")
    ] = None,
    target: Annotated[Target, typer.Option("--to", help="What runs the bundle.")] = Target.ONNX,
    precision: Annotated[
        StoredPrecision,
        typer.Option(
            help="fp32: as trained. fp16: half the size. int8: a quarter, and by far the fastest on CPUs."
        ),
    ] = StoredPrecision.FP32,
    random_weights: Annotated[
        RandomSize | None,
        typer.Option(
            help="Instead of SOURCE.nemo: a network with random weights, for benchmarks. Its words are noise."
        ),
    ] = None,
    tokens_per_second: Annotated[
        float,
        typer.Option(min=0.1, max=10.0, help="With --random-weights: tokens per second of speech, roughly."),
    ] = 4.0,
    seed: Annotated[
        int, typer.Option(min=0, help="With --random-weights: another seed, another network.")
    ] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the bundle. Default: that of the source.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the weights, for the manifest.")] = None,
) -> None:
    """Turn a NeMo checkpoint into a bundle that `serve --model` and `transcribe --model` run.

    The archive is checked before anything of it is used, and the bundle is compared with PyTorch before it
    appears in BUNDLE_DIR. Example: `parakeet-live models convert parakeet.nemo --precision int8 --out parakeet-int8`
    """
    if (source is None) == (random_weights is None):
        fail("give either SOURCE.nemo or --random-weights SIZE")
    exporter = _load("parakeet_models.export")
    nemo = _load("parakeet_models.nemo")
    audio = exporter.TestAudio("the demo recording", np.concatenate(list(read_blocks(RECORDING))))
    steps = _Steps()
    try:
        exporter.check_output(out)
        if source is not None:
            steps.begin(f"reading and checking {source.name} ({_megabytes(source)})")
            model = exporter.from_nemo(source, name=name, licence=licence)
        else:
            assert random_weights is not None
            steps.begin(f"drawing and calibrating random weights ({random_weights})")
            model = exporter.from_random_weights(
                random_weights.value, tokens_per_second, seed=seed, audio=audio, name=name, licence=licence
            )
        bundle = exporter.convert(model, out, precision=precision.value, audio=audio, report=steps.begin)
    except (exporter.ConvertError, exporter.ParityError, nemo.NemoError) as error:
        fail(str(error))
    finally:
        steps.end()
    _print_bundle(bundle)


def _load(package: str) -> ModuleType:
    """A package of the extra ``convert``; loaded by name, so that type checking of the server stops here."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA_MODULES:
            raise
        fail(
            f"converting needs more packages ({error.name} is missing): pip install 'parakeet-live[convert]'"
        )


class _Steps:
    """Names the running step on standard error, and how long each took."""

    def __init__(self) -> None:
        self._status = notes.status("")
        self._name: str | None = None
        self._started = 0.0

    def begin(self, name: str) -> None:
        """The running step is over, the next one begins."""
        self.end()
        self._name, self._started = name, time.monotonic()
        self._status.update(name)
        self._status.start()

    def end(self) -> None:
        """The running step is over."""
        self._status.stop()
        if self._name is not None:
            notes.print(f"{self._name}: {time.monotonic() - self._started:.1f} s", markup=False)
        self._name = None


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB" if path.is_file() else "no such file"


def _print_bundle(bundle: Bundle) -> None:
    """Files with sizes, and the parity figures; to standard output."""
    console = Console(highlight=False, soft_wrap=True)
    manifest = bundle.manifest
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("file")
    table.add_column("MB", justify="right")
    for file in manifest.files:
        table.add_row(file.path, f"{file.bytes / 1e6:.1f}")
    table.add_section()
    table.add_row("together", f"{sum(file.bytes for file in manifest.files) / 1e6:.1f}")
    console.print(f"{manifest.name} ({manifest.weights}) is in {bundle.directory}", markup=False)
    console.print(table)
    if manifest.weights_origin == "random":
        console.print("Random weights: for benchmarks only, its words are noise.")
    if (parity := manifest.parity) is not None:
        console.print(
            f"Against PyTorch over {parity.steps} steps: largest difference {parity.max_difference:.1e}, "
            f"relative {parity.relative_difference:.1e}. On {parity.audio}: {parity.tokens} tokens, "
            f"{100 * parity.token_agreement:.1f} % agree."
        )
