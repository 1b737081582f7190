"""The subsampling as training computes it: the same function as `Subsampling`, with normalised input, faster.

It is two fifths of a training step, and all of that is memory traffic: the first stage makes 25 MB of a batch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from parakeet_models.network import NetworkConfig
from parakeet_models.network.subsampling import FREQUENCY_PADDING, Subsampling, length_mask

MEAN = -9.0
DEVIATION = 4.5
"""Raw log-mel lies between -17 and 3, far from zero mean, and a network fed with that hardly starts to learn."""

TIME_PADDING = (2, 1)
_TAPS = 9
_COLUMNS = 16
"""The nine taps and the bias, and six columns of zeros: products with ten columns take three to ten times as long."""


class TrainingSubsampling(Subsampling):
    """Normalised input, channels innermost, float32 whatever the autocast.

    The backward pass of a strided depthwise convolution takes seven times longer in bfloat16 than in float32
    (oneDNN, measured).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.conv.to(memory_format=torch.channels_last)

    def folded(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the plain first convolution that computes the same from raw log-mel.

        Exact, as the normalisation is affine and comes after the zero padding.
        """
        weight = self.conv[0].weight / DEVIATION
        return weight, self.conv[0].bias - MEAN * weight.sum(dim=(1, 2, 3))

    def forward(self, mel: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", enabled=False):
            patches = _patches(mel, length)
            first = self.conv[0]
            weight = torch.cat([first.weight.flatten(1), first.bias[:, None]], 1)
            weight = F.pad(weight, (0, _COLUMNS - _TAPS - 1)).t()
            x = F.relu(patches.flatten(0, 2) @ weight, inplace=True).unflatten(0, patches.shape[:3])
            length = length // 2 + 1
            for depthwise, pointwise in ((self.conv[2], self.conv[3]), (self.conv[5], self.conv[6])):
                if depthwise is not self.conv[2]:
                    x = x * length_mask(length, x.shape[1])[:, :, None, None]
                    x = F.pad(x, (0, 0, *FREQUENCY_PADDING, *TIME_PADDING))
                x = depthwise(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
                x = F.relu(F.linear(x, pointwise.weight.flatten(1), pointwise.bias), inplace=True)
                length = length // 2 + 1
            return self.out(x.transpose(2, 3).flatten(2)), length


@torch.no_grad()
def _patches(mel: Tensor, length: Tensor) -> Tensor:
    """mel [B, T, bins] -> what each output of the first stage sees, [B, T1 + 3, F1 + 3, columns].

    The next stage's padding is there already, and frames behind a row's end: as zeros, the column of the bias too,
    which makes them zeros in the output without another pass over it.
    """
    batch, frames, bins = mel.shape
    x = mel * length_mask(length, frames)[:, :, None]
    x = (F.pad(x, (*FREQUENCY_PADDING, *TIME_PADDING)) - MEAN) / DEVIATION
    times, bands = frames // 2 + 1, bins // 2 + 1
    valid = length_mask(length // 2 + 1, times)[:, :, None]
    out = mel.new_zeros(batch, times + sum(TIME_PADDING), bands + sum(FREQUENCY_PADDING), _COLUMNS)
    inner = out[:, TIME_PADDING[0] : -TIME_PADDING[1], FREQUENCY_PADDING[0] : -FREQUENCY_PADDING[1]]
    for tap in range(_TAPS):
        row, column = divmod(tap, 3)
        inner[..., tap] = x[:, row : row + 2 * times - 1 : 2, column : column + 2 * bands - 1 : 2] * valid
    inner[..., _TAPS] = valid
    return out
