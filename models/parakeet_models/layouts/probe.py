"""Recognises published layouts: looks at every graph of a directory, never at what its file is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from parakeet_models.bundle import MANIFEST_NAME, Bundle, ModelInfo, Runtime, load_bundle
from parakeet_models.layouts import altunenes, fluidinference, sherpa, soniqo
from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import ForeignBundle, Graphs, Layout
from parakeet_models.layouts.ports import PartPorts, recognise_part
from parakeet_models.layouts.signature import SUFFIXES, read_signature

FAMILIES: tuple[Callable[[Graphs], Layout | None], ...] = (
    soniqo.recognise,
    fluidinference.recognise,
    altunenes.recognise,
    sherpa.recognise,
)
LICENCE = "NVIDIA Open Model License"
"""Of the checkpoint that all of these exports are made of."""


def load_model(directory: Path) -> Bundle | ForeignBundle:
    """The bundle in ``directory``: our own, verified, or a published layout.

    Raises:
        BundleError: neither, or broken; with the reason and the remedy.
    """
    directory = Path(directory)
    if (directory / MANIFEST_NAME).is_file() or not directory.is_dir():
        return load_bundle(directory)
    layout = describe(directory)
    manifest = ModelInfo(
        name=_name(layout),
        description=layout.title,
        languages=("en",),
        licence=LICENCE,
        source=f"published layout ({layout.family})",
        mel=layout.mel,
        tokens=layout.tokens,
        step_sizes=layout.step_sizes,
    )
    return ForeignBundle(directory, manifest, layout)


def describe(directory: Path, runtime: Runtime | None = None) -> Layout:
    """What a directory of published graphs holds.

    Where it has graphs of both kinds, ``runtime`` chooses; the default is Core ML on a Mac and ONNX elsewhere.

    Raises:
        LayoutError: nothing is recognised, or what is recognised cannot be run; with the reason and the remedy.
    """
    directory = Path(directory)
    paths = [path for path in sorted(directory.iterdir()) if path.suffix in SUFFIXES]
    kinds: dict[Runtime, list[Path]] = {
        "onnx": [path for path in paths if path.suffix == ".onnx"],
        "coreml": _without_doubles([path for path in paths if path.suffix != ".onnx"]),
    }
    present = [kind for kind in kinds if kinds[kind]]
    if not present:
        raise LayoutError(_nothing_here(directory))
    if runtime is None:
        runtime = "coreml" if sys.platform == "darwin" else "onnx"
        if runtime not in present:
            (runtime,) = present
    graphs = _read(directory, runtime, kinds[runtime])
    for recognise in FAMILIES:
        if (layout := recognise(graphs)) is not None:
            return layout
    seen = ", ".join(f"{path.name} ({_part_name(graphs.parts.get(path))})" for path in kinds[runtime])
    raise LayoutError(
        f"{directory}: no published layout of this network: {seen or 'no graphs'}. Needed are a cache-aware encoder, "
        "a prediction network and a joint; see docs/layouts.md for what is recognised"
    )


def _read(directory: Path, runtime: Runtime, paths: list[Path]) -> Graphs:
    parts: dict[Path, PartPorts] = {}
    metadata = {}
    for path in paths:
        signature = read_signature(path)
        metadata[path] = signature.metadata
        if (ports := recognise_part(signature)) is not None:
            parts[path] = ports
    return Graphs(directory, runtime, parts, metadata)


def _without_doubles(paths: list[Path]) -> list[Path]:
    """Compiled models only, where a model is there in both forms: they load without being compiled again."""
    compiled = {path.stem for path in paths if path.suffix == ".mlmodelc"}
    return [path for path in paths if path.suffix == ".mlmodelc" or path.stem not in compiled]


def _nothing_here(directory: Path) -> str:
    inside = sorted(
        child.name
        for child in directory.iterdir()
        if child.is_dir() and any(graph.suffix in SUFFIXES for graph in child.iterdir())
    )
    if inside:
        return f"{directory}: the models are one level down; give one of {', '.join(inside)}"
    return (
        f"{directory}: no {MANIFEST_NAME} and no {', '.join(SUFFIXES)} files; give the directory of a bundle, "
        "or of a published export of this network"
    )


def _part_name(ports: PartPorts | None) -> str:
    return type(ports).__name__.removesuffix("Ports").lower() if ports else "not recognised"


def _name(layout: Layout) -> str:
    """The directory's name, and that of the one above where it only names a variant ("320ms")."""
    directory = layout.directory.resolve()
    return f"{directory.parent.name}/{directory.name}" if directory.name[:1].isdigit() else directory.name
