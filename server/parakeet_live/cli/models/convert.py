"""``parakeet-live models convert``: a checkpoint becomes a bundle."""

from __future__ import annotations

import time
from collections import Counter
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from parakeet_live.audio.files import read_blocks
from parakeet_live.cli.console import fail, notes
from parakeet_live.demo import RECORDING
from parakeet_models.bundle import EMBEDDED_NAME, Bundle, BundleError, embedded_bundle, load_bundle
from parakeet_models.coreml_runtime import CoremlUnavailableError, find_runtime
from parakeet_models.packages import PACKAGE_SUFFIX

EXTRA_MODULES = frozenset({"google", "onnx", "safetensors", "torch", "yaml"})
"""What the extra ``convert`` brings."""


class Target(StrEnum):
    """What a bundle is made for."""

    ONNX = "onnx"
    COREML = "coreml"


class StoredPrecision(StrEnum):
    """How weights are stored; :data:`parakeet_models.bundle.Precision` as a command-line choice."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"
    PALETTIZED = "palettized"


DEFAULT_PRECISION = {Target.ONNX: StoredPrecision.FP32, Target.COREML: StoredPrecision.FP16}


class StateKind(StrEnum):
    """Where Core ML keeps what a stream remembers; :data:`parakeet_models.packages.State`."""

    EXPLICIT = "explicit"
    MLSTATE = "mlstate"


class RandomSize(StrEnum):
    """Networks that can be made of random weights."""

    FULL = "120m"
    TINY = "tiny"


def convert_model(
    out: Annotated[Path, typer.Option("--out", metavar="BUNDLE_DIR", help="Directory to create.")],
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="SOURCE",
            help="A NeMo checkpoint archive (.nemo), the directory of an ONNX bundle with fp32 or fp16 weights, or "
            f"{EMBEDDED_NAME} for the embedded model.",
        ),
    ] = None,
    target: Annotated[Target, typer.Option("--to", help="What runs the bundle.")] = Target.ONNX,
    precision: Annotated[
        StoredPrecision | None,
        typer.Option(
            help="fp32: as trained (default for ONNX). fp16: half the size (default for Core ML). int8: a quarter, "
            "and by far the fastest on CPUs. palettized: a quarter, for Core ML."
        ),
    ] = None,
    state: Annotated[
        StateKind,
        typer.Option(
            help="With --to coreml: where streams keep their caches. mlstate: in Core ML's own states, macOS 15."
        ),
    ] = StateKind.EXPLICIT,
    step: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="FRAMES",
            help="With --to coreml: encoder frames (80 ms) in a step; repeat it. Default: 2 when live and 16 to catch "
            "up or for recordings.",
        ),
    ] = None,
    random_weights: Annotated[
        RandomSize | None,
        typer.Option(
            help="Instead of SOURCE: a network with random weights, for benchmarks. Its words are noise."
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
    appears in BUNDLE_DIR, Core ML packages on a Mac only. Another bundle can be converted, too.
    Example: `parakeet-live models convert parakeet.nemo --precision int8 --out parakeet-int8`
    """
    if (source is None) == (random_weights is None):
        fail("give either SOURCE or --random-weights SIZE")
    precision = precision or DEFAULT_PRECISION[target]
    exporter = _load("parakeet_models.export")
    options = (
        _package_options(precision, state, step)
        if target is Target.COREML
        else _graph_options(precision, step)
    )
    nemo = _load("parakeet_models.nemo")
    audio = exporter.TestAudio("the demo recording", np.concatenate(list(read_blocks(RECORDING))))
    steps = _Steps()
    try:
        exporter.check_output(out)
        if source is not None:
            if (bundle := _source_bundle(source)) is not None:
                steps.begin(f"reading the weights of {bundle.manifest.name} back from its graphs")
                model = exporter.from_bundle(bundle, name=name, licence=licence)
            else:
                steps.begin(f"reading and checking {source.name} ({_megabytes(source)})")
                model = exporter.from_nemo(source, name=name, licence=licence)
        else:
            assert random_weights is not None
            steps.begin(f"drawing and calibrating random weights ({random_weights})")
            model = exporter.from_random_weights(
                random_weights.value, tokens_per_second, seed=seed, audio=audio, name=name, licence=licence
            )
        bundle = exporter.convert(
            model, out, precision=precision.value, audio=audio, report=steps.begin, **options
        )
    except (
        exporter.ConvertError,
        exporter.ParityError,
        exporter.UnfoldError,
        nemo.NemoError,
        BundleError,
    ) as error:
        fail(str(error))
    finally:
        steps.end()
    _print_bundle(bundle)


def _source_bundle(source: Path) -> Bundle | None:
    """The bundle that SOURCE names, if it names one."""
    if source.is_dir():
        return load_bundle(source, any_format=True)  # older graphs hold the same weights
    return embedded_bundle() if str(source) == EMBEDDED_NAME and not source.exists() else None


def _graph_options(precision: StoredPrecision, step: list[int] | None) -> dict[str, Any]:
    if precision is StoredPrecision.PALETTIZED:
        fail("palettized weights are for Core ML: add --to coreml, or choose another precision")
    if step:
        fail(
            "--step is for Core ML, whose packages have fixed shapes: an ONNX bundle takes steps of any even size"
        )
    return {}


def _package_options(precision: StoredPrecision, state: StateKind, step: list[int] | None) -> dict[str, Any]:
    if state is StateKind.MLSTATE and precision is StoredPrecision.FP32:
        fail("Core ML's states hold fp16 only: choose --state explicit for fp32, or another precision")
    packages = _load("parakeet_models.export.coreml.bundle")
    try:
        open_model = find_runtime(keep_compiled=False)
    except CoremlUnavailableError:
        open_model = None  # said at the end
    chosen = {"steps": step} if step else {}
    return {
        "write": partial(packages.write_package_bundle, state=state.value, open_model=open_model, **chosen)
    }


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
    except ImportError as error:  # our own, which names the remedy
        fail(str(error))


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
    """Files or packages with sizes, and the parity figures; to standard output."""
    console = Console(highlight=False, soft_wrap=True)
    manifest = bundle.manifest
    sizes: Counter[str] = Counter()
    for file in manifest.files:
        sizes[file.path.partition("/")[0]] += file.bytes
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("file" if manifest.coreml is None else "package")
    table.add_column("MB", justify="right")
    if manifest.coreml is not None:
        table.add_column("operations")
    for name, size in sizes.items():
        table.add_row(name, f"{size / 1e6:.1f}", _operations(bundle, name))
    table.add_section()
    table.add_row("together", f"{sizes.total() / 1e6:.1f}")
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
    else:
        console.print(
            "Not compared with PyTorch, because Core ML packages run on macOS only: convert it again on a Mac for "
            "these figures."
        )


def _operations(bundle: Bundle, name: str) -> str | None:
    """How many operations each function of a package has; None where that is no question."""
    if bundle.manifest.coreml is None or not name.endswith(PACKAGE_SUFFIX):
        return None
    counts = _load("parakeet_models.export.coreml.report").operation_counts(bundle.directory / name)
    return ", ".join(f"{function} {count.total()}" for function, count in counts.items())
