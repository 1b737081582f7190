"""A checkpoint directory, as the training recipe writes it: weights, sizes and tokenizer, without pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file

from parakeet_models.mel import MelParameters
from parakeet_models.network import NetworkConfig, ParakeetNetwork

WEIGHTS_NAME = "network.safetensors"
CONFIG_NAME = "config.json"
TOKENIZER_NAME = "tokenizer.model"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network with its front end and the path of its SentencePiece model."""

    network: ParakeetNetwork
    mel: MelParameters
    tokenizer: Path


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read ``network.safetensors``, ``config.json`` ({"network": …, "mel": …}) and ``tokenizer.model``.

    Raises:
        OSError: a file is missing.
        RuntimeError: the weights do not fit the sizes in ``config.json``.
    """
    config = json.loads((directory / CONFIG_NAME).read_text(encoding="utf-8"))
    network = ParakeetNetwork(NetworkConfig(**config["network"]))
    network.load_state_dict(load_file(directory / WEIGHTS_NAME))
    return Checkpoint(network.eval(), MelParameters(**config["mel"]), directory / TOKENIZER_NAME)
