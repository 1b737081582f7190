"""Offline greedy RNN-T decoding in PyTorch: the reference for the runtime's batched decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from parakeet_models.network.network import ParakeetNetwork

MAX_SYMBOLS_PER_FRAME = 10
"""NeMo's default: after this many tokens on one frame, decoding moves to the next frame."""


@dataclass(frozen=True, slots=True)
class GreedyToken:
    """One emitted token: its id, the encoder frame it was emitted on, and its softmax probability."""

    token: int
    frame: int
    probability: float


@torch.inference_mode()
def greedy_decode(
    network: ParakeetNetwork, encoded: Tensor, *, reset_on: frozenset[int] = frozenset()
) -> list[GreedyToken]:
    """Greedy search over one signal's encoder output float[T, d_model].

    Tokens in ``reset_on`` (EOU and EOB when streaming) reset the prediction network to the start of sequence
    and end their frame; with the default every token is ordinary, as in NeMo.
    """
    blank = network.config.blank
    start, start_state = network.decoder(torch.tensor([[blank]]))
    prediction, state = start, start_state
    tokens: list[GreedyToken] = []
    for frame in range(encoded.shape[0]):
        for _ in range(MAX_SYMBOLS_PER_FRAME):
            logits = network.joint(encoded[None, frame : frame + 1], prediction)[0, 0, 0].float()
            token = int(logits.argmax())
            if token == blank:
                break
            tokens.append(GreedyToken(token, frame, float(logits.softmax(-1)[token])))
            if token in reset_on:
                prediction, state = start, start_state
                break
            prediction, state = network.decoder(torch.tensor([[token]]), state)
    return tokens
