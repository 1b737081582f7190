"""A conformer layer with its weights folded for streaming."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.conformer import ConformerLayer
from parakeet_models.network.graph_ops import Reshape, reshape


class FoldedLayer(nn.Module):
    """One conformer layer for streaming, with its weights folded into the fewest operations.

    Queries, keys and values come from one product; the macaron's halves are part of the weights; the position
    projection is a constant. The same arithmetic as :class:`ConformerLayer` up to rounding.
    """

    def __init__(self, layer: ConformerLayer, table: Tensor) -> None:
        super().__init__()
        self.source = layer
        attention, convolution = layer.self_attn, layer.conv
        self.heads, self.head_size = attention.heads, attention.head_size
        scale = self.head_size**-0.5
        self.qkv = _merged([_scaled(attention.linear_q, scale), attention.linear_k, attention.linear_v])
        self.half1 = _scaled(layer.feed_forward1.linear2, 0.5)
        self.half2 = _scaled(layer.feed_forward2.linear2, 0.5)
        self.register_buffer("bias_u", attention.pos_bias_u.flatten() * scale)
        self.register_buffer("bias_v", attention.pos_bias_v.flatten() * scale)
        folded = attention.linear_pos(table).view(-1, self.heads, self.head_size)
        self.register_buffer("positions", folded.permute(1, 2, 0).contiguous())
        self.register_buffer("taps", convolution.depthwise_conv.weight[:, 0].t().contiguous())

    def forward(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        conv: Tensor,
        rows: Tensor,
        mask: Tensor,
        by_head: Tensor,
        windows: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, n, d_model]; rings ``keys`` and ``values`` [B, heads, 1, left, head_size];
        ``rows`` int64[heads, B * n, left + n]; ``mask`` [B, 1, n, 1, left + n]; ``by_head`` is (heads, B, n, 1, -1);
        ``windows`` int64[n, kernel]: the frames of [conv cache | new frames] that each new frame is convolved from.

        Returns x, the new rows of the rings [B, 2 * heads, 1, n, head_size], keys first, and the new conv cache.
        """
        source = self.source
        x = x + self.half1(F.silu(source.feed_forward1.linear1(source.norm_feed_forward1(x))))
        y, new_rows = self.attend(source.norm_self_att(x), keys, values, rows, mask, by_head)
        x = x + y
        y, new_conv = self.convolve(source.norm_conv(x), conv, windows)
        x = x + y
        x = x + self.half2(F.silu(source.feed_forward2.linear1(source.norm_feed_forward2(x))))
        return source.norm_out(x), new_rows, new_conv

    def attend(
        self, x: Tensor, keys: Tensor, values: Tensor, rows: Tensor, mask: Tensor, by_head: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attention over [ring | new frames]; the ring is never copied, projected or shifted."""
        left = values.shape[3]
        width = self.heads * self.head_size
        q, kv = self.qkv(x).split([width, 2 * width], dim=-1)
        with_u = reshape(q + self.bias_u, 0, -1, self.heads, self.head_size, 1).transpose(1, 2)
        # Positions are the same for every row, so heads lead and all rows of the batch share one product a head.
        with_v = reshape(q + self.bias_v, 0, -1, self.heads, self.head_size).permute(2, 0, 1, 3)
        with_v = reshape(with_v, 0, -1, self.head_size)
        kv = reshape(kv, 0, -1, 2 * self.heads, 1, self.head_size).permute(0, 2, 3, 1, 4)
        k, v = kv.split(self.heads, dim=1)
        # The relative shift and the rotation of the ring are one gather: row r of the table is distance
        # ``farthest - r``, and ``rows`` holds r for every (query, key).
        by_position = torch.gather(torch.matmul(with_v, self.positions), 2, rows)
        by_position = Reshape.apply(by_position, by_head).transpose(0, 1)
        # One product a query, [B, heads, n, ...]: a product with one vector reads the ring where it is, larger ones
        # repack it first, which costs more than reading it again for the next query.
        by_content = torch.cat([torch.matmul(keys, with_u), torch.matmul(k, with_u)], 3)
        by_content = reshape(by_content, 0, 0, 0, 1, -1)
        weights = torch.softmax(by_content + by_position + mask, -1)
        y = torch.matmul(weights[..., :left], values) + torch.matmul(weights[..., left:], v)
        y = reshape(y.transpose(1, 2), 0, -1, self.heads * self.head_size)
        return self.source.self_attn.linear_out(y), kv

    def convolve(self, x: Tensor, conv: Tensor, windows: Tensor) -> tuple[Tensor, Tensor]:
        """The causal convolution module; returns its output and the new cache."""
        module = self.source.conv
        y = torch.cat([conv, module.gate(x)], 1)
        # A depthwise convolution in the fewest operations, and without transposing [B, n, d_model].
        z = (y[:, windows] * self.taps).sum(2)
        if module.depthwise_conv.bias is not None:
            z = z + module.depthwise_conv.bias
        return module.finish(z), y[:, 1 - module.kernel :]


def _merged(linears: list[nn.Linear]) -> nn.Linear:
    """One linear layer that computes several, side by side."""
    first = linears[0]
    merged = nn.Linear(
        first.in_features, sum(linear.out_features for linear in linears), bias=first.bias is not None
    )
    merged.weight.data = torch.cat([linear.weight for linear in linears])
    if first.bias is not None:
        merged.bias.data = torch.cat([linear.bias for linear in linears])
    return merged


def _scaled(linear: nn.Linear, factor: float) -> nn.Linear:
    """A linear layer times a constant."""
    scaled = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
    scaled.weight.data = linear.weight * factor
    if linear.bias is not None:
        scaled.bias.data = linear.bias * factor
    return scaled
