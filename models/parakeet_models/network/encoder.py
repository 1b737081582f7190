"""The offline encoder: whole signals at once, with the attention mask of the streaming one."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from parakeet_models.network.config import NetworkConfig
from parakeet_models.network.conformer import ConformerLayer, sinusoidal_positions
from parakeet_models.network.subsampling import Subsampling, length_mask


class Encoder(nn.Module):
    """Cache-aware FastConformer encoder, offline forward."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.pre_encode = Subsampling(config)
        self.layers = nn.ModuleList(ConformerLayer(config) for _ in range(config.layers))
        self.scale = math.sqrt(config.d_model) if config.xscaling else 1.0

    def attention_hidden(self, frames: int, length: Tensor) -> Tensor:
        """bool[B, 1, frames, frames], True where a key is hidden: ``chunked_limited`` context and padding.

        A query sees its own chunk of ``attention_right + 1`` frames and ``attention_left`` frames of whole
        chunks before it.
        """
        chunk = torch.arange(frames, device=length.device) // self.config.attention_chunk
        behind = chunk[:, None] - chunk[None, :]
        outside = (behind < 0) | (behind > self.config.attention_left // self.config.attention_chunk)
        padding = length_mask(length, frames)[:, None, None, :] == 0
        return outside[None, None] | padding

    def forward(self, mel: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """mel float32[B, T, bins], length int64[B] -> (float[B, T', d_model], int64[B])."""
        x, length = self.pre_encode(mel, length)
        x = x * self.scale
        frames = x.shape[1]
        distances = torch.arange(frames - 1, -frames, -1, device=x.device)
        positions = sinusoidal_positions(distances, self.config.d_model).to(x.dtype)
        hidden = self.attention_hidden(frames, length)
        mask = length_mask(length, frames)[:, :, None]
        for layer in self.layers:
            x = layer(x, positions, hidden, mask)
        return x, length
