"""Write a bundle from a network and check it against PyTorch before anyone can use it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from parakeet_models.bundle import (
    GRAPH_ROLES,
    Bundle,
    Parity,
    Precision,
    describe_file,
    load_bundle,
    write_manifest,
)
from parakeet_models.export.onnx import export_graphs
from parakeet_models.export.parity import TestAudio, measure_parity
from parakeet_models.export.source import Source
from parakeet_models.random_weights.signal import speech_like

STEP_SIZES = (2, 4, 8, 16)
PARITY_TOLERANCE = 1e-4
"""Largest difference of any output where only the order of additions differs; see :class:`Parity`."""
INT8_TOLERANCE = 0.1
"""Largest relative difference of the encoded frames with eight-bit weights: a wrong scale gives far more."""


class ParityError(Exception):
    """The exported graph does not compute what the network computes."""


def write_bundle(
    source: Source,
    directory: Path,
    *,
    precision: Precision = "fp16",
    audio: TestAudio | None = None,
    report: Callable[[str], None] = lambda step: None,
) -> Bundle:
    """Export ``source`` into ``directory`` and return the verified bundle; its manifest holds the parity figures.

    ``fp16`` rounds the network's weights, here too, and stores them so; ``int8`` quantises the encoder's matrices.
    ``audio`` is what token agreement is measured on, at the model's rate; without it, a speech-like sound.
    ``report`` is told the name of each step when it begins.

    Raises:
        ParityError: if the exported encoder differs from PyTorch by more than the tolerance of its precision.
        ValueError: if the tokenizer has no ``<EOU>`` piece or another size than the network.
    """
    tokens, network = source.token_ids(), source.network
    directory.mkdir(parents=True, exist_ok=True)
    report(f"tracing the graphs ({precision})")
    export_graphs(network, directory, precision=precision)
    files = [describe_file(directory, f"{role}.onnx", role) for role in GRAPH_ROLES]
    files += source.write_companions(directory)
    step_sizes = tuple(size for size in STEP_SIZES if size % network.config.attention_chunk == 0)
    audio = audio or TestAudio("speech-like sound", speech_like(10.0, seed=0))
    report("comparing with PyTorch")
    parity = measure_parity(network, directory, source.mel, tokens, step_sizes, audio)
    _check_parity(parity, precision)
    write_manifest(directory, source.manifest(precision, step_sizes, files, parity=parity))
    return load_bundle(directory)


def _check_parity(parity: Parity, precision: Precision) -> None:
    if precision == "int8":
        found, allowed = parity.relative_difference, INT8_TOLERANCE
    else:
        found, allowed = parity.max_difference, PARITY_TOLERANCE
    if not found <= allowed:
        raise ParityError(
            f"exported {precision} encoder differs from PyTorch by {found:.1e}, allowed {allowed:.0e}"
        )
