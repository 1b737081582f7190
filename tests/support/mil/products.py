"""Matrix products, convolutions, recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from support.mil.registry import operation

operation("einsum", tensors="values")(lambda values, equation: torch.einsum(equation, *values))
operation("linear", tensors="x weight bias")(lambda x, weight, bias=None: F.linear(x, weight, bias))


@operation("matmul", tensors="x y")
def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    return torch.matmul(x.mT if transpose_x else x, y.mT if transpose_y else y)


@operation("scaled_dot_product_attention", tensors="query key value attn_mask")
def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)


@operation("conv", tensors="x weight bias")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    strides: Sequence[int] | None = None,
    pad_type: str = "valid",
    pad: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Tensor:
    """``pad`` has two numbers for each spatial axis, the first axis first."""
    spatial = x.ndim - 2
    if pad_type == "custom" and pad is not None:
        pairs = [pad[i : i + 2] for i in range(0, len(pad), 2)]
        x = F.pad(x, [size for pair in reversed(pairs) for size in pair])
    elif pad_type != "valid":
        raise NotImplementedError(f"pad_type {pad_type!r}")
    function = {1: F.conv1d, 2: F.conv2d}[spatial]
    ones = [1] * spatial
    return function(x, weight, bias, strides or ones, 0, dilations or ones, groups)


@operation("lstm", tensors="x initial_h initial_c weight_ih weight_hh bias")
def lstm(
    x: Tensor,
    initial_h: Tensor,
    initial_c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
    direction: str = "forward",
    output_sequence: bool = False,
    recurrent_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    activation: str = "tanh",
) -> tuple[Tensor, Tensor, Tensor]:
    """x [T, B, I]; the order of the gates is input, forget, output, cell."""
    if (direction, recurrent_activation, cell_activation, activation) != (
        "forward",
        "sigmoid",
        "tanh",
        "tanh",
    ):
        raise NotImplementedError("LSTM other than forward with sigmoid and tanh")
    h, c = initial_h, initial_c
    outputs = []
    for frame in x:
        gates = F.linear(frame, weight_ih, bias) + F.linear(h, weight_hh)
        i, f, o, g = gates.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return (torch.stack(outputs) if output_sequence else h[None]), h, c
