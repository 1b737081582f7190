"""Published weights of Parakeet-EOU-120M by short name: where they are, which files are needed, what is known of them.

Facts are those of the publishers' pages and of the code that runs their files. Repositories move on: sizes are about
what they were, and a pull records the revision it got.
"""

from __future__ import annotations

import difflib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from parakeet_models.hub.errors import HubError

WEIGHTS_LICENCE = "NVIDIA Open Model License"
"""Of the original checkpoint, and so of everything converted from it."""


class Runtime(StrEnum):
    """What executes the files."""

    COREML = "coreml"
    ONNX = "onnx"
    NEMO = "nemo"
    """A checkpoint: to be converted first."""


class Standing(StrEnum):
    """What is known about running an entry here. None of the published files was executed when this was written."""

    LAYOUT = "layout"
    """Files of the same names and shapes are recognised and run in the tests."""
    REFUSED = "refused"
    """By its published numbers, the graph's history runs ahead of the audio: the self-test at load refuses it."""
    CONVERT = "convert"
    """`models convert` makes a bundle of it; archives of the same layout are converted and run in the tests."""

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Standing.LAYOUT: "files of this layout run in our tests; these weights themselves were never run by us",
    Standing.REFUSED: "its cache runs ahead of the audio (3 frames a hop of 1, or 17 of 16); expect a refusal",
    Standing.CONVERT: "to be converted first; archives of this layout are converted in our tests",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One published set of weights."""

    name: str
    repository: str
    """On the Hugging Face Hub."""
    runtime: Runtime
    patterns: tuple[str, ...]
    """Glob patterns of the files to get, relative to ``folder``; ``*`` also matches slashes."""
    needed: tuple[str, ...]
    """Paths relative to ``folder``, each a file or a folder that must be among what was found."""
    megabytes: int
    """About the size of the download, in 10^6 bytes."""
    standing: Standing
    note: str
    folder: str = ""
    """Folder of the repository that becomes the root of the local copy."""
    licence: str = WEIGHTS_LICENCE

    def local_path(self, path: str) -> str | None:
        """Where a file of the repository lies in the local copy; None for one outside of :attr:`folder`."""
        inner = PurePosixPath(path)
        if self.folder:
            if not inner.is_relative_to(self.folder):
                return None
            inner = inner.relative_to(self.folder)
        return str(inner)


_PAPERS = ("README.md", "LICENSE*")


def _coreml(*packages: str) -> tuple[str, ...]:
    return tuple(f"{package}.mlmodelc" for package in packages)


def _fluid(cadence: str, standing: Standing, note: str) -> Entry:
    packages = _coreml("streaming_encoder", "decoder", "joint_decision")
    return Entry(
        name=f"eou-120m-coreml-{cadence}",
        repository="FluidInference/parakeet-realtime-eou-120m-coreml",
        runtime=Runtime.COREML,
        folder=cadence,
        patterns=(*(f"{package}/*" for package in packages), "vocab.json", *_PAPERS),
        needed=(*packages, "vocab.json"),
        megabytes=231,
        standing=standing,
        note=note,
    )


CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name="eou-120m-coreml-int8",
        repository="aufklarer/Parakeet-EOU-120M-CoreML-INT8",
        runtime=Runtime.COREML,
        patterns=(
            "encoder.mlmodelc/*",
            "decoder.mlmodelc/*",
            "joint.mlmodelc/*",
            "vocab.json",
            "config.json",
            *_PAPERS,
        ),
        needed=(*_coreml("encoder", "decoder", "joint"), "vocab.json", "config.json"),
        megabytes=112,
        standing=Standing.LAYOUT,
        note="soniqo's packages, eight-bit weights, steps of 320 ms",
    ),
    _fluid("320ms", Standing.LAYOUT, "FluidInference's packages, fp16, steps of 320 ms"),
    _fluid("160ms", Standing.REFUSED, "FluidInference's packages, fp16, steps of 80 ms"),
    _fluid("1280ms", Standing.REFUSED, "FluidInference's packages, fp16, steps of 1280 ms"),
    Entry(
        name="eou-120m-onnx",
        repository="altunenes/parakeet-rs",
        runtime=Runtime.ONNX,
        folder="realtime_eou_120m-v1-onnx",
        patterns=("encoder.onnx*", "decoder_joint.onnx*", "tokenizer.json", *_PAPERS),
        needed=("encoder.onnx", "decoder_joint.onnx", "tokenizer.json"),
        megabytes=460,
        standing=Standing.LAYOUT,
        note="altunenes' graphs, fp32, steps of 160 ms",
    ),
    Entry(
        name="eou-120m-onnx-int8",
        repository="soniqo/Parakeet-EOU-120M-ONNX-INT8",
        runtime=Runtime.ONNX,
        patterns=("*.onnx", "*.onnx.data", "vocab.json", "config.json", *_PAPERS),
        needed=(
            "parakeet-eou-encoder.onnx",
            "parakeet-eou-decoder.onnx",
            "parakeet-eou-joint.onnx",
            "vocab.json",
            "config.json",
        ),
        megabytes=153,
        standing=Standing.LAYOUT,
        note="soniqo's graphs, eight-bit weights, steps of 320 ms",
    ),
    Entry(
        name="eou-120m-nemo",
        repository="nvidia/parakeet_realtime_eou_120m-v1",
        runtime=Runtime.NEMO,
        patterns=("*.nemo", *_PAPERS),
        needed=("parakeet_realtime_eou_120m-v1.nemo",),
        megabytes=460,
        standing=Standing.CONVERT,
        note="NVIDIA's original checkpoint; what `models convert` makes of it is the fastest here",
    ),
)
"""In order of preference among entries of one runtime."""


def find(name: str, catalogue: Sequence[Entry] = CATALOGUE, more: Sequence[str] = ()) -> Entry:
    """The entry with this short name or repository; ``more`` are other names that may have been meant.

    Raises:
        HubError: names the nearest entries.
    """
    if (entry := lookup(name, catalogue)) is not None:
        return entry
    names = [*(entry.name for entry in catalogue), *more]
    raise HubError(f"there is no model {name!r}; {_suggestion(name.lower(), names)}")


def lookup(name: str, catalogue: Sequence[Entry] = CATALOGUE) -> Entry | None:
    """The entry with this short name or repository."""
    wanted = name.strip().lower()
    return next((entry for entry in catalogue if wanted in (entry.name, entry.repository.lower())), None)


def _suggestion(name: str, names: Sequence[str]) -> str:
    """Which of ``names`` may have been meant, or all of them."""
    parts = [known for known in names if name and name in known]
    near = parts or difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"


def native_runtime(system: str | None = None, machine: str | None = None) -> Runtime:
    """What this kind of computer runs best: Core ML on a Mac with Apple silicon, ONNX Runtime elsewhere.

    Macs with Intel processors have no Neural Engine.
    """
    system, machine = system or platform.system(), machine or platform.machine()
    return Runtime.COREML if (system, machine) == ("Darwin", "arm64") else Runtime.ONNX


def default_entry(runtime: Runtime, catalogue: Sequence[Entry] = CATALOGUE) -> Entry:
    """What `models pull` gets when no name is given."""
    return next(entry for entry in catalogue if entry.runtime is runtime)
