"""A conformer layer in the Neural Engine's layout: channels first, four dimensions, no gather, no dynamic shape.

Activations are [1, d_model, 1, n]: channels, then one unused axis, then time. docs/coreml.md gives the reason of
every choice; all of them leave the arithmetic of :class:`network.conformer.ConformerLayer` as it is, up to rounding.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.conformer import (
    CausalConvolution,
    ConformerLayer,
    FeedForward,
    RelativeAttention,
)

SMALLEST_SCALE = 1e-6
"""Stands for a normalisation weight of exactly zero, by which :class:`ChannelNorm` would divide."""


class ChannelNorm(nn.Module):
    """Layer normalisation over the channel axis of [1, C, 1, n].

    Written as Apple's ml-ane-transformers writes it, shift before scale: coremltools recognises this very pattern
    and makes one ``layer_norm`` over axis 1 of it, where a plain ``nn.LayerNorm`` would need two transpositions.
    """

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.epsilon = norm.eps
        scale = torch.where(norm.weight == 0, SMALLEST_SCALE, norm.weight).detach()
        self.register_buffer("scale", scale.view(1, -1, 1, 1))
        self.register_buffer("shift", (norm.bias.detach() / scale).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(1, keepdim=True)
        variance = (centred * centred).mean(1, keepdim=True)
        return (centred * torch.rsqrt(variance + self.epsilon) + self.shift) * self.scale


def pointwise(weight: Tensor, bias: Tensor | None) -> nn.Conv2d:
    """A matrix [out, in] as a 1x1 convolution."""
    conv = nn.Conv2d(weight.shape[1], weight.shape[0], 1, bias=bias is not None)
    conv.weight.data = weight.detach()[:, :, None, None].contiguous()
    if bias is not None:
        conv.bias.data = bias.detach().clone()
    return conv


class ChannelsFirstFeedForward(nn.Module):
    """Half a feed-forward: the macaron's factor is part of the second matrix."""

    def __init__(self, source: FeedForward) -> None:
        super().__init__()
        first, second = source.linear1, source.linear2
        self.expand = pointwise(first.weight, first.bias)
        self.contract = pointwise(second.weight * 0.5, None if second.bias is None else second.bias * 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(F.silu(self.expand(x)))


class ChannelsFirstAttention(nn.Module):
    """Relative-position attention over [cached | new] keys in order of time.

    Because the cache is shifted and not rotated, a (query, key) pair has the same distance at every step, and the
    scores by position need slices with constant bounds instead of a gather.
    """

    def __init__(self, source: RelativeAttention, positions: Tensor, step: int) -> None:
        """``positions`` float[left + 2 * step - 1, d_model]: encodings of the distances left + step - 1 downwards."""
        super().__init__()
        self.heads, self.head_size, self.step = source.heads, source.head_size, step
        self.keys = len(positions) - step + 1
        scale = self.head_size**-0.5
        query, key, value = source.linear_q, source.linear_k, source.linear_v
        u, v = source.pos_bias_u.detach(), source.pos_bias_v.detach()
        # The query is needed as q + u for content and as q + v for position. The projection yields q + u, and the
        # difference of the two goes into the bias of the position scores.
        bias = u.flatten() if query.bias is None else query.bias + u.flatten()
        self.query = pointwise(query.weight * scale, bias * scale)
        # Apart from the scaled query, so that with eight-bit weights each has a palette that fits it.
        self.key_value = pointwise(
            torch.cat([key.weight, value.weight]),
            None if key.bias is None else torch.cat([key.bias, value.bias]),
        )
        with torch.no_grad():
            folded = source.linear_pos(positions).view(-1, self.heads, self.head_size).transpose(0, 1)
            offset = torch.matmul(folded, ((v - u) * scale)[:, :, None])
        # One group for each head: all heads' scores by position are one convolution.
        self.by_position = nn.Conv2d(
            source.heads * self.head_size, folded[..., 0].numel(), 1, groups=source.heads
        )
        self.by_position.weight.data = folded.reshape(-1, self.head_size, 1, 1).contiguous()
        self.by_position.bias.data = offset.flatten()
        self.out = pointwise(source.linear_out.weight, source.linear_out.bias)

    def position_scores(self, query: Tensor) -> Tensor:
        """query [1, d_model, 1, n] -> [1, keys, heads, n]; query i reads the table from row n - 1 - i on."""
        rows = self.by_position(query).chunk(self.heads, 1)
        table = torch.cat(rows, 2).chunk(self.step, 3)
        first = range(self.step - 1, -1, -1)
        columns = [column[:, row : row + self.keys] for row, column in zip(first, table, strict=True)]
        return torch.cat(columns, 3)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [1, d_model, 1, n], cached ``keys`` [1, left, 1, d_model] and ``values`` [1, d_model, 1, left], oldest
        first, ``mask`` [1, left + n, 1, n] -> output, new keys [1, n, 1, d_model], new values [1, d_model, 1, n].
        """
        query = self.query(x)
        key, value = self.key_value(x).chunk(2, 1)
        key = key.transpose(1, 3)
        query_heads = query.chunk(self.heads, 1)
        key_heads = torch.cat([keys, key], 1).chunk(self.heads, 3)
        value_heads = torch.cat([values, value], 3).chunk(self.heads, 1)
        by_content = [
            torch.einsum("bkhc,bchq->bkhq", k, q) for k, q in zip(key_heads, query_heads, strict=True)
        ]
        scores = torch.cat(by_content, 2) + self.position_scores(query) + mask
        weights = scores.softmax(1).chunk(self.heads, 2)
        mixed = [torch.einsum("bchk,bkhq->bchq", v, w) for v, w in zip(value_heads, weights, strict=True)]
        return self.out(torch.cat(mixed, 1)), key, value


class ChannelsFirstConvolution(nn.Module):
    """The causal convolution module; its depthwise part is a real depthwise convolution along the last axis."""

    def __init__(self, source: CausalConvolution) -> None:
        super().__init__()
        first, depthwise, last = source.pointwise_conv1, source.depthwise_conv, source.pointwise_conv2
        channels, self.past = depthwise.in_channels, source.kernel - 1
        self.gate = pointwise(first.weight[:, :, 0], first.bias)
        self.depthwise = nn.Conv2d(
            channels, channels, (1, source.kernel), groups=channels, bias=depthwise.bias is not None
        )
        self.depthwise.weight.data = depthwise.weight.detach()[:, :, None].contiguous()
        if depthwise.bias is not None:
            self.depthwise.bias.data = depthwise.bias.detach().clone()
        self.norm = ChannelNorm(source.batch_norm)
        self.out = pointwise(last.weight[:, :, 0], last.bias)

    def forward(self, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """x [1, d_model, 1, n] and the last ``kernel - 1`` gated frames before it -> output, the new cache."""
        linear, gate = self.gate(x).chunk(2, 1)
        frames = torch.cat([cache, linear * gate.sigmoid()], 3)
        return self.out(F.silu(self.norm(self.depthwise(frames)))), frames[..., -self.past :]


class ChannelsFirstLayer(nn.Module):
    """Macaron layer with residuals, for steps of one fixed size."""

    def __init__(self, source: ConformerLayer, positions: Tensor, step: int) -> None:
        super().__init__()
        self.norm_feed_forward1 = ChannelNorm(source.norm_feed_forward1)
        self.norm_self_att = ChannelNorm(source.norm_self_att)
        self.norm_conv = ChannelNorm(source.norm_conv)
        self.norm_feed_forward2 = ChannelNorm(source.norm_feed_forward2)
        self.norm_out = ChannelNorm(source.norm_out)
        self.feed_forward1 = ChannelsFirstFeedForward(source.feed_forward1)
        self.feed_forward2 = ChannelsFirstFeedForward(source.feed_forward2)
        self.attention = ChannelsFirstAttention(source.self_attn, positions, step)
        self.convolution = ChannelsFirstConvolution(source.conv)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, conv: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Arguments as in the two modules above; returns x, the new keys, the new values, the new conv cache."""
        x = x + self.feed_forward1(self.norm_feed_forward1(x))
        y, key, value = self.attention(self.norm_self_att(x), keys, values, mask)
        x = x + y
        y, conv = self.convolution(self.norm_conv(x), conv)
        x = x + y
        x = x + self.feed_forward2(self.norm_feed_forward2(x))
        return self.norm_out(x), key, value, conv
