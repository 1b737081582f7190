"""Two operations that PyTorch has, and traces badly: the traced graph would compute shapes and pad by copying."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.subsampling import FREQUENCY_PADDING


class Reshape(torch.autograd.Function):
    """``Reshape`` by a tensor in which 0 keeps a dimension, so that the traced graph computes no shapes."""

    @staticmethod
    def forward(ctx: object, x: Tensor, shape: Tensor) -> Tensor:
        return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())])

    @staticmethod
    def symbolic(g: Any, x: Any, shape: Any) -> Any:
        return g.op("Reshape", x, shape)


def reshape(x: Tensor, *shape: int) -> Tensor:
    """``x.reshape``, where 0 keeps the dimension at its place and -1 is inferred (the ONNX operator's rules)."""
    return Reshape.apply(x, torch.tensor(shape))


class _FrequencyPaddedConv(torch.autograd.Function):
    """``Conv`` with the uneven padding as an attribute; PyTorch only knows even padding or a copy."""

    @staticmethod
    def forward(ctx: object, x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
        return F.conv2d(F.pad(x, (*FREQUENCY_PADDING, 0, 0)), weight, bias, stride=2, groups=groups)

    @staticmethod
    def symbolic(g: Any, x: Any, weight: Any, bias: Any, groups: int) -> Any:
        left, right = FREQUENCY_PADDING
        return g.op("Conv", x, weight, bias, strides_i=[2, 2], pads_i=[0, left, 0, right], group_i=groups)


def frequency_padded_conv(x: Tensor, conv: nn.Conv2d) -> Tensor:
    """A stride-2 convolution on x [B, C, T, F] that pads frequency and leaves time alone."""
    return _FrequencyPaddedConv.apply(x, conv.weight, conv.bias, conv.groups)
