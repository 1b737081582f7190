"""An archive becomes our network: keys renamed, every tensor accounted for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import torch
from torch import Tensor

from parakeet_models.mel import MelParameters
from parakeet_models.nemo.archive import read_archive
from parakeet_models.nemo.checks import INCONSISTENT, RETRAIN, Settings, Weights, refuse
from parakeet_models.nemo.errors import NemoError
from parakeet_models.nemo.frontend import mel_parameters
from parakeet_models.nemo.geometry import check_class, joint_output_key, network_config
from parakeet_models.network import NetworkConfig, ParakeetNetwork

FRONT_END_PREFIX = "preprocessor."
EMBEDDING_KEY = "decoder.prediction.embed.weight"
OUR_JOINT_OUTPUT = "joint.joint_net.2"


@dataclass(frozen=True, slots=True)
class NemoModel:
    """A network with NeMo's weights, its front end and its SentencePiece model."""

    network: ParakeetNetwork
    mel: MelParameters
    tokenizer: bytes


def load_nemo(path: Path) -> NemoModel:
    """Read, check and convert an archive.

    Raises:
        NemoError: the archive is broken or unsafe, or holds a network that would not compute the same here.
    """
    archive = read_archive(path)
    settings, weights = Settings(archive.config), Weights(archive.weights)
    check_class(settings)
    mel = mel_parameters(settings, weights)
    config = network_config(settings, weights, mel.bins)
    _check_tokenizer(archive.tokenizer, config)
    network = ParakeetNetwork(config).eval().requires_grad_(False)
    network.load_state_dict(_renamed(network, weights))
    return NemoModel(network, mel, archive.tokenizer)


def _renamed(network: ParakeetNetwork, weights: Weights) -> dict[str, Tensor]:
    """The state dict under our names, after checking that names, shapes and values are what we expect."""
    prefix = joint_output_key(weights).removesuffix(".weight")
    renamed = {
        (OUR_JOINT_OUTPUT + key.removeprefix(prefix) if key.startswith(f"{prefix}.") else key): value
        for key, value in weights.tensors.items()
        if not key.startswith(FRONT_END_PREFIX)
    }
    expected = network.state_dict()
    if missing := sorted(expected.keys() - renamed.keys()):
        refuse(missing[0], "no such tensor", f"shape {tuple(expected[missing[0]].shape)}", INCONSISTENT)
    if unknown := sorted(renamed.keys() - expected.keys()):
        refuse(unknown[0], "a tensor", "none of this name", RETRAIN)
    for key, value in renamed.items():
        if value.shape != expected[key].shape:
            refuse(key, f"shape {tuple(value.shape)}", f"shape {tuple(expected[key].shape)}", INCONSISTENT)
        if not value.is_floating_point() or not torch.isfinite(value).all():
            refuse(
                key,
                "integers, infinities or NaN",
                "finite numbers",
                "the training diverged; use another checkpoint",
            )
    # Decoding starts by feeding the blank, which is the zero vector NeMo starts with only if this row is zero.
    blank = renamed[EMBEDDING_KEY][network.config.blank]
    if torch.count_nonzero(blank):
        refuse(
            f"{EMBEDDING_KEY}[{network.config.blank}]",
            f"values up to {blank.abs().max():.1e}",
            "zeros",
            RETRAIN,
        )
    return renamed


def _check_tokenizer(model: bytes, config: NetworkConfig) -> None:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError:
        raise NemoError(
            "tokenizer.model: not a SentencePiece model; copy or download the archive again"
        ) from None
    if processor.GetPieceSize() != config.vocabulary:
        refuse("tokenizer.model", f"{processor.GetPieceSize()} pieces", config.vocabulary, INCONSISTENT)
    if processor.IdToPiece(processor.PieceToId("<EOU>")) != "<EOU>":
        refuse("tokenizer.model", "no piece <EOU>", "<EOU>", "the model cannot end an utterance; " + RETRAIN)
