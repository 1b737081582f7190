"""The same network for both sides of a comparison: our bundles, and the files sherpa-onnx loads."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from parakeet_models.bundle import Bundle, Precision, load_bundle
from parakeet_models.export.convert import Source, convert, from_nemo
from parakeet_models.export.nemo_layout import export_nemo_layout, quantize_encoder, read_pieces
from parakeet_models.mel import MelParameters
from parakeet_models.random_weights import RANDOM_SIZES, EmissionRate, random_network, train_random_tokenizer

RATE = EmissionRate(tokens_per_second=4.0, tokens_per_end=10_000)
"""Ends of utterance reset our decoder and not sherpa-onnx's, so none may occur while both are measured."""
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
DONE = "prepared.json"


@dataclass(frozen=True, slots=True)
class PeerModels:
    """Everything the engines load."""

    bundles: dict[str, Bundle]
    """Ours, by precision."""
    encoders: dict[str, Path]
    """sherpa-onnx's, by variant; ``decoder.onnx``, ``joiner.onnx`` and ``tokens.txt`` lie beside them."""
    source: str


def prepare(work: Path, nemo: Path | None, size: str) -> PeerModels:
    """Export everything into ``work`` on the first call; later calls take what lies there.

    ``nemo`` is a ``.nemo`` archive; without one, random weights of ``size`` (see RANDOM_SIZES).

    Raises:
        ValueError: ``work`` holds another network.
    """
    wanted = nemo.name if nemo else f"random weights, {size}"
    done = work / DONE
    if not done.exists():
        _export(work, from_nemo(nemo) if nemo else _random(size))
        done.write_text(json.dumps({"source": wanted}), encoding="utf-8")
    found = json.loads(done.read_text(encoding="utf-8"))["source"]
    if found != wanted:
        raise ValueError(f"{work} holds {found}, not {wanted}; give another directory")
    peer = work / "nemo"
    return PeerModels(
        {precision: load_bundle(work / precision) for precision in PRECISIONS},
        {
            "fp32": peer / "encoder.onnx",
            "int8 MatMul": peer / "encoder.int8-matmul.onnx",
            "int8 published": peer / "encoder.int8-published.onnx",
        },
        found,
    )


def _random(size: str, seed: int = 0) -> Source:
    config = RANDOM_SIZES[size]
    mel = MelParameters(bins=config.mel_bins)
    tokenizer = train_random_tokenizer(config.vocabulary, seed)
    eou = read_pieces(tokenizer).index("<EOU>")
    return Source(
        random_network(config, mel, eou, RATE, seed),
        mel,
        tokenizer,
        name=f"peers-{size}",
        description="Random weights for benchmarks: its words are noise.",
        licence="Apache-2.0",
        origin=f"random weights, seed {seed}",
        weights_origin="random",
    )


def _export(work: Path, source: Source) -> None:
    for precision in PRECISIONS:
        shutil.rmtree(work / precision, ignore_errors=True)
        convert(source, work / precision, precision=precision)
    export_nemo_layout(source.network, read_pieces(source.tokenizer), work / "nemo")
    quantize_encoder(work / "nemo", "matmul")
    quantize_encoder(work / "nemo", "published")
