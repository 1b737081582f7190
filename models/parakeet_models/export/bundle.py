"""Write a bundle from a network and check it against PyTorch before anyone can use it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import sentencepiece

from parakeet_models.bundle import (
    GRAPH_ROLES,
    Bundle,
    BundleFile,
    Geometry,
    Manifest,
    Parity,
    Precision,
    TokenIds,
    WeightsOrigin,
    describe_file,
    load_bundle,
    write_manifest,
)
from parakeet_models.export.onnx import export_graphs
from parakeet_models.export.parity import TestAudio, measure_parity
from parakeet_models.mel import MelParameters
from parakeet_models.network import ParakeetNetwork
from parakeet_models.random_weights.signal import speech_like

STEP_SIZES = (2, 4, 8, 16)
PARITY_TOLERANCE = 1e-4
"""Largest difference of any output where only the order of additions differs; see :class:`Parity`."""
INT8_TOLERANCE = 0.1
"""Largest relative difference of the encoded frames with eight-bit weights: a wrong scale gives far more."""


class ParityError(Exception):
    """The exported graph does not compute what the network computes."""


def write_bundle(
    network: ParakeetNetwork,
    mel: MelParameters,
    tokenizer: Path,
    directory: Path,
    *,
    name: str,
    description: str,
    languages: tuple[str, ...],
    licence: str,
    source: str,
    model_card: Path | None = None,
    precision: Precision = "fp16",
    weights_origin: WeightsOrigin = "trained",
    audio: TestAudio | None = None,
    report: Callable[[str], None] = lambda step: None,
) -> Bundle:
    """Export ``network`` into ``directory`` and return the verified bundle; its manifest holds the parity figures.

    ``fp16`` rounds the network's weights, here too, and stores them so; ``int8`` quantises the encoder's matrices.
    ``audio`` is what token agreement is measured on, at the model's rate; without it, a speech-like sound.
    ``report`` is told the name of each step when it begins.

    Raises:
        ParityError: if the exported encoder differs from PyTorch by more than the tolerance of its precision.
        ValueError: if the tokenizer has no ``<EOU>`` piece or another size than the network.
    """
    tokens = token_ids(tokenizer, network.config.vocabulary)
    directory.mkdir(parents=True, exist_ok=True)
    report(f"tracing the graphs ({precision})")
    export_graphs(network, directory, precision=precision)
    files = [describe_file(directory, f"{role}.onnx", role) for role in GRAPH_ROLES]
    files += copy_companions(directory, tokenizer, model_card)
    step_sizes = tuple(size for size in STEP_SIZES if size % network.config.attention_chunk == 0)
    audio = audio or TestAudio("speech-like sound", speech_like(10.0, seed=0))
    report("comparing with PyTorch")
    parity = measure_parity(network, directory, mel, tokens, step_sizes, audio)
    _check_parity(parity, precision)
    manifest = Manifest(
        name=name,
        description=description,
        languages=languages,
        licence=licence,
        source=source,
        weights=precision,
        weights_origin=weights_origin,
        geometry=Geometry(**asdict(network.config)),
        mel=mel,
        tokens=tokens,
        step_sizes=step_sizes,
        parity=parity,
        files=tuple(files),
    )
    write_manifest(directory, manifest)
    return load_bundle(directory)


def copy_companions(directory: Path, tokenizer: Path, model_card: Path | None) -> list[BundleFile]:
    """Copy what is no graph into a bundle; the manifest entries."""
    shutil.copyfile(tokenizer, directory / "tokenizer.model")
    files = [describe_file(directory, "tokenizer.model", "tokenizer")]
    if model_card is not None:
        shutil.copyfile(model_card, directory / "MODEL_CARD.md")
        files.append(describe_file(directory, "MODEL_CARD.md", "model_card"))
    return files


def _check_parity(parity: Parity, precision: Precision) -> None:
    if precision == "int8":
        found, allowed = parity.relative_difference, INT8_TOLERANCE
    else:
        found, allowed = parity.max_difference, PARITY_TOLERANCE
    if not found <= allowed:
        raise ParityError(
            f"exported {precision} encoder differs from PyTorch by {found:.1e}, allowed {allowed:.0e}"
        )


def token_ids(tokenizer: Path, vocabulary: int) -> TokenIds:
    """Special ids by their pieces ``<EOU>``, ``<EOB>`` and the tokenizer's own unknown id."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    if processor.GetPieceSize() != vocabulary:
        raise ValueError(f"{tokenizer}: {processor.GetPieceSize()} pieces, the network has {vocabulary}")
    ids = {processor.IdToPiece(i): i for i in range(vocabulary)}
    if "<EOU>" not in ids:
        raise ValueError(f"{tokenizer}: no <EOU> piece; this model cannot end an utterance")
    return TokenIds(eou=ids["<EOU>"], eob=ids.get("<EOB>"), blank=vocabulary, unknown=processor.unk_id())
