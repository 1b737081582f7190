"""The subsampling as training computes it: the same function as `Subsampling`, with normalised input, faster.

Its first stage makes 25 MB of a batch, and half of the time went into passing over those. So one kernel goes from the
mel frames to the second stage's depthwise convolution, three rows of the first stage at a time, which stay in the
processor's nearest cache; the backward pass computes them again. (For 50 s of audio forward and backward: 67 ms with
one pass after another, 43 ms with the kernel.)
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from parakeet_models.network import NetworkConfig
from parakeet_models.network.subsampling import FREQUENCY_PADDING, Subsampling, length_mask

MEAN = -9.0
DEVIATION = 4.5
"""Raw log-mel lies between -17 and 3, far from zero mean, and a network fed with that hardly starts to learn."""

TIME_PADDING = (2, 1)


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
            x = mel * length_mask(length, mel.shape[1])[:, :, None]
            x = (F.pad(x, (*FREQUENCY_PADDING, *TIME_PADDING)) - MEAN) / DEVIATION
            length = length // 2 + 1
            first, second = self.conv[0], self.conv[2]
            x = _FirstStages.apply(  # type: ignore[no-untyped-call]
                x, length, _taps(first.weight), first.bias, _taps(second.weight), second.bias
            )
            x = self._mixed(x, 3)
            length = length // 2 + 1
            x = x * length_mask(length, x.shape[1])[:, :, None, None]
            x = F.pad(x, (0, 0, *FREQUENCY_PADDING, *TIME_PADDING))
            x = self._mixed(self.conv[5](x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), 6)
            return self.out(x.transpose(2, 3).flatten(2)), length // 2 + 1

    def _mixed(self, x: Tensor, index: int) -> Tensor:
        """x [B, T, F, C] through the pointwise convolution at `index` of `conv`, and rectified."""
        pointwise = self.conv[index]
        return F.relu(F.linear(x, pointwise.weight.flatten(1), pointwise.bias), inplace=True)


def _taps(weight: Tensor) -> Tensor:
    """A convolution's weight [C, 1, 3, 3] with the channels innermost, [9, C]."""
    return weight.flatten(1).t().contiguous()


class _FirstStages(torch.autograd.Function):
    """The first stage and the second one's depthwise convolution.

    x float32[B, T + 3, bins + 3], padded; valid int64[B], rows of the first stage; the taps of both convolutions [9, C]
    and their biases [C] -> [B, T2, F2, C]. No gradient for x.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        valid: Tensor,
        first: Tensor,
        first_bias: Tensor,
        second: Tensor,
        second_bias: Tensor,
    ) -> Tensor:
        times, bands = ((size - 3) // 2 + 1 for size in x.shape[1:])
        out = x.new_empty(len(x), times // 2 + 1, bands // 2 + 1, first.shape[1])
        ctx.save_for_backward(x, valid, first, first_bias, second)
        _forward(*(_array(part) for part in (x, valid, first, first_bias, second, second_bias, out)))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, valid, first, first_bias, second = ctx.saved_tensors
        sums = [torch.zeros_like(part) for part in (first, first_bias, second)]
        arrays = (x, valid, first, first_bias, second, gradient.contiguous(), *sums)
        _backward(*(_array(part) for part in arrays))
        return None, None, *sums, gradient.sum((0, 1, 2))


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


@numba.njit(cache=True, fastmath=True)
def _seen(x, time, band):  # type: ignore[no-untyped-def]
    """The nine values of x [T + 3, bins + 3] that the first stage sees at a place, in the order of its taps."""
    above, middle, below, at = x[2 * time], x[2 * time + 1], x[2 * time + 2], 2 * band
    return (
        above[at], above[at + 1], above[at + 2],
        middle[at], middle[at + 1], middle[at + 2],
        below[at], below[at + 1], below[at + 2],
    )  # fmt: skip


@numba.njit(cache=True, fastmath=True)
def _first_row(x, time, valid, taps, bias, row):  # type: ignore[no-untyped-def]
    """Row `time` of the rectified first stage of x [T + 3, bins + 3] into row [F1 + 3, C], but for its padding;
    zeros outside the `valid` ones."""
    if time < 0 or time >= valid:
        row[:] = 0.0
        return
    for band in range((x.shape[1] - 3) // 2 + 1):
        a, b, c, d, e, f, g, h, i = _seen(x, time, band)
        for k in range(len(bias)):
            value = (
                bias[k] + a * taps[0, k] + b * taps[1, k] + c * taps[2, k] + d * taps[3, k] + e * taps[4, k]
            )
            value += f * taps[5, k] + g * taps[6, k] + h * taps[7, k] + i * taps[8, k]
            row[band + 2, k] = max(value, np.float32(0))


@numba.njit(cache=True, fastmath=True)
def _forward(x, valid, first, first_bias, second, second_bias, out):  # type: ignore[no-untyped-def]
    channels = len(first_bias)
    rows = np.zeros((3, (x.shape[2] - 3) // 2 + 4, channels), np.float32)
    for batch in range(len(x)):
        rows[:] = 0.0
        for time in range(out.shape[1]):
            for new in (2 * time - 1, 2 * time):
                _first_row(x[batch], new, valid[batch], first, first_bias, rows[(new + 3) % 3])
            above, middle, below = rows[(2 * time + 1) % 3], rows[(2 * time + 2) % 3], rows[2 * time % 3]
            for band in range(out.shape[2]):
                at, into = 2 * band, out[batch, time, band]
                for k in range(channels):
                    value = second_bias[k]
                    for j in range(3):
                        value += above[at + j, k] * second[j, k]
                        value += middle[at + j, k] * second[3 + j, k]
                        value += below[at + j, k] * second[6 + j, k]
                    into[k] = value


@numba.njit(cache=True, fastmath=True)
def _first_gradient(x, time, valid, row, gradient, sums, bias_sums):  # type: ignore[no-untyped-def]
    """Add to the sums what the complete gradient [F1 + 3, C] of row `time` of the first stage means for its taps."""
    if time < 0 or time >= valid:
        return
    for band in range((x.shape[1] - 3) // 2 + 1):
        a, b, c, d, e, f, g, h, i = _seen(x, time, band)
        for k in range(len(bias_sums)):
            part = gradient[band + 2, k] if row[band + 2, k] > 0 else np.float32(0)
            bias_sums[k] += part
            sums[0, k] += part * a
            sums[1, k] += part * b
            sums[2, k] += part * c
            sums[3, k] += part * d
            sums[4, k] += part * e
            sums[5, k] += part * f
            sums[6, k] += part * g
            sums[7, k] += part * h
            sums[8, k] += part * i


@numba.njit(cache=True, fastmath=True)
def _backward(x, valid, first, first_bias, second, gradient, first_sums, bias_sums, second_sums):  # type: ignore[no-untyped-def]
    channels = len(first_bias)
    rows = np.zeros((3, (x.shape[2] - 3) // 2 + 4, channels), np.float32)
    down = np.zeros_like(rows)
    for batch in range(len(x)):
        rows[:] = 0.0
        down[:] = 0.0
        last = gradient.shape[1] - 1
        for time in range(last + 1):
            for new in (2 * time - 1, 2 * time):
                _first_row(x[batch], new, valid[batch], first, first_bias, rows[(new + 3) % 3])
                down[(new + 3) % 3] = 0.0
            for band in range(gradient.shape[2]):
                at, given = 2 * band, gradient[batch, time, band]
                for i in range(3):
                    row, into = rows[(2 * time + 1 + i) % 3], down[(2 * time + 1 + i) % 3]
                    for j in range(3):
                        for k in range(channels):
                            second_sums[3 * i + j, k] += given[k] * row[at + j, k]
                            into[at + j, k] += given[k] * second[3 * i + j, k]
            for done in (2 * time - 2, 2 * time - 1):
                slot = (done + 3) % 3
                _first_gradient(x[batch], done, valid[batch], rows[slot], down[slot], first_sums, bias_sums)
        slot = 2 * last % 3
        _first_gradient(x[batch], 2 * last, valid[batch], rows[slot], down[slot], first_sums, bias_sums)
