"""Causal depthwise-striding subsampling by eight: three stride-2 convolution stages and a projection."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.config import NetworkConfig

FREQUENCY_PADDING = (2, 1)
"""Zeros left and right of the frequency axis at every stage; the time axis gets the same, 2 past and 1 future."""


def length_mask(length: Tensor, size: int) -> Tensor:
    """Float mask [B, size], 1.0 where the index is below ``length`` [B]."""
    return (torch.arange(size, device=length.device)[None] < length[:, None]).float()


class Subsampling(nn.Module):
    """Mel [B, T, bins] -> encoder input [B, T', d_model], T' = three times T // 2 + 1.

    The module indices inside ``conv`` (0, 2, 3, 5, 6) are those of NeMo's ``ConvSubsampling``.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        channels = config.subsampling_channels
        self.conv = nn.ModuleList(
            [
                nn.Conv2d(1, channels, 3, stride=2),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, stride=2, groups=channels),
                nn.Conv2d(channels, channels, 1),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, stride=2, groups=channels),
                nn.Conv2d(channels, channels, 1),
                nn.ReLU(),
            ]
        )
        self.out = nn.Linear(channels * config.stage_widths[2], config.d_model)

    def stage(self, index: int, x: Tensor) -> Tensor:
        """Stage 0, 1 or 2 on x [B, C, T, F]; the caller has padded time, this pads frequency."""
        x = F.pad(x, (*FREQUENCY_PADDING, 0, 0))
        for module in (self.conv[0:2], self.conv[2:5], self.conv[5:8])[index]:
            x = module(x)
        return x

    def project(self, x: Tensor) -> Tensor:
        """[B, C, T', F'] -> [B, T', d_model]; channels outermost, as NeMo flattens."""
        return self.out(x.transpose(1, 2).flatten(2))

    def forward(self, mel: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """mel [B, T, bins], length int64[B] in mel frames -> ([B, T', d_model], int64[B]).

        Frames at or beyond a row's length are zeroed before every stage, so padding never leaks into a row.
        """
        x = mel.unsqueeze(1)
        for index in range(3):
            x = x * length_mask(length, x.shape[2])[:, None, :, None].to(x.dtype)
            x = self.stage(index, F.pad(x, (0, 0, 2, 1)))
            length = length // 2 + 1
        return self.project(x), length
