"""Write a bundle from a network and check it against PyTorch before anyone can use it."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnxruntime as ort
import sentencepiece
import torch

from parakeet_models.bundle import (
    Bundle,
    Geometry,
    Manifest,
    Role,
    TokenIds,
    describe_file,
    encoder_inputs,
    encoder_outputs,
    load_bundle,
    write_manifest,
)
from parakeet_models.export.onnx import export_graphs
from parakeet_models.mel import MelParameters
from parakeet_models.network import EncoderState, ParakeetNetwork, StreamingEncoder
from parakeet_models.network.streaming import MAX_STEP

STEP_SIZES = (2, 4, 8, 16)
PARITY_STEPS = 48
"""More than the 35 steps of two frames that fill the attention ring, so that it wraps."""
PARITY_TOLERANCE = 1e-4

GRAPH_ROLES: tuple[Role, ...] = ("encoder", "prediction", "joint")


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
    half_weights: bool = True,
) -> tuple[Bundle, float]:
    """Export ``network`` into ``directory``; returns the verified bundle and the parity difference.

    Raises:
        ParityError: if the exported encoder differs from PyTorch by more than PARITY_TOLERANCE.
        ValueError: if the tokenizer has no ``<EOU>`` piece or another size than the network.
    """
    tokens = token_ids(tokenizer, network.config.vocabulary)
    directory.mkdir(parents=True, exist_ok=True)
    export_graphs(network, directory, half_weights=half_weights)
    shutil.copyfile(tokenizer, directory / "tokenizer.model")
    files = [describe_file(directory, f"{role}.onnx", role) for role in GRAPH_ROLES]
    files.append(describe_file(directory, "tokenizer.model", "tokenizer"))
    if model_card is not None:
        shutil.copyfile(model_card, directory / "MODEL_CARD.md")
        files.append(describe_file(directory, "MODEL_CARD.md", "model_card"))
    manifest = Manifest(
        name=name,
        description=description,
        languages=languages,
        licence=licence,
        source=source,
        weights="fp16" if half_weights else "fp32",
        geometry=Geometry(**asdict(network.config)),
        mel=mel,
        tokens=tokens,
        step_sizes=tuple(size for size in STEP_SIZES if size % network.config.attention_chunk == 0),
        files=tuple(files),
    )
    write_manifest(directory, manifest)
    difference = encoder_difference(network, directory / "encoder.onnx", manifest.step_sizes)
    if difference > PARITY_TOLERANCE:
        raise ParityError(
            f"exported encoder differs from PyTorch by {difference:.2e} > {PARITY_TOLERANCE:.0e}"
        )
    return load_bundle(directory), difference


def token_ids(tokenizer: Path, vocabulary: int) -> TokenIds:
    """Special ids by their pieces ``<EOU>``, ``<EOB>`` and the tokenizer's own unknown id."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    if processor.GetPieceSize() != vocabulary:
        raise ValueError(f"{tokenizer}: {processor.GetPieceSize()} pieces, the network has {vocabulary}")
    ids = {processor.IdToPiece(i): i for i in range(vocabulary)}
    if "<EOU>" not in ids:
        raise ValueError(f"{tokenizer}: no <EOU> piece; this model cannot end an utterance")
    return TokenIds(eou=ids["<EOU>"], eob=ids.get("<EOB>"), blank=vocabulary, unknown=processor.unk_id())


def encoder_difference(
    network: ParakeetNetwork, graph: Path, step_sizes: tuple[int, ...], seed: int = 0
) -> float:
    """Largest absolute difference between the graph and the PyTorch streaming encoder, same inputs, all outputs.

    Three streams of different ages through PARITY_STEPS steps of mixed sizes.
    """
    torch.manual_seed(seed)
    sizes = np.random.default_rng(seed).choice(step_sizes, PARITY_STEPS)
    config = network.config
    session = ort.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    streaming = StreamingEncoder(network, MAX_STEP)
    state = EncoderState.initial(config, 3)
    worst = 0.0
    for index, size in enumerate(sizes.tolist()):
        mel = torch.randn(3, 8 * size + 1, config.mel_bins) * 3 - 8
        # Rows begin at steps 0, 1 and 2: until then a row is repeatedly on its first step.
        begin = torch.tensor([8 if index <= row else 0 for row in range(3)])
        end = torch.full((3,), 8 * size + 1)
        caches = [
            state.position,
            state.valid,
            state.stage1,
            state.stage2,
            *state.keys,
            *state.values,
            *state.conv,
        ]
        values = [tensor.numpy().copy() for tensor in (mel, begin, end, *caches)]
        feed = dict(zip(encoder_inputs(config.layers), values, strict=True))
        outputs = dict(zip(encoder_outputs(config.layers), session.run(None, feed), strict=True))
        expected = streaming.step(mel, begin, end, state)
        pairs = [(outputs["encoded"], expected), (outputs["new_stage2"], state.stage2)]
        pairs += [(outputs[f"new_conv_{layer}"], state.conv[layer]) for layer in range(config.layers)]
        worst = max(worst, *(float(np.abs(ours - theirs.numpy()).max()) for ours, theirs in pairs))
    return worst
