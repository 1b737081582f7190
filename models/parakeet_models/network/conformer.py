"""One FastConformer layer: half feed-forward, relative-position attention, causal convolution, half feed-forward."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.config import NetworkConfig

MASKED = -10_000.0
"""Score of a hidden key before the softmax: far below any real score, and still a finite fp16 number."""


def sinusoidal_positions(distances: Tensor, d_model: int) -> Tensor:
    """Position encodings [n, d_model] of relative distances [n] (query minus key, in encoder frames).

    Source: Dai et al., "Transformer-XL" (2019); sine on even, cosine on odd channels.
    """
    rates = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * -(math.log(10_000.0) / d_model))
    angles = distances.float()[:, None] * rates.to(distances.device)[None]
    return torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1).flatten(1)


class FeedForward(nn.Module):
    """d_model -> expansion * d_model -> d_model with SiLU."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        inner = config.d_model * config.feed_forward_expansion
        self.linear1 = nn.Linear(config.d_model, inner, bias=config.use_bias)
        self.linear2 = nn.Linear(inner, config.d_model, bias=config.use_bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(F.silu(self.linear1(x)))


class RelativeAttention(nn.Module):
    """Multi-head self-attention with Transformer-XL relative positions and per-layer biases u and v."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads, self.head_size = config.heads, config.head_size
        for name in ("linear_q", "linear_k", "linear_v", "linear_out"):
            setattr(self, name, nn.Linear(config.d_model, config.d_model, bias=config.use_bias))
        self.linear_pos = nn.Linear(config.d_model, config.d_model, bias=False)
        self.pos_bias_u = nn.Parameter(torch.zeros(config.heads, config.head_size))
        self.pos_bias_v = nn.Parameter(torch.zeros(config.heads, config.head_size))

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, d_model] -> [B, heads, T, head_size]."""
        return x.view(x.shape[0], x.shape[1], self.heads, self.head_size).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """[B, heads, T, head_size] -> [B, T, d_model], through the output projection."""
        return self.linear_out(x.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, positions: Tensor, hidden: Tensor) -> Tensor:
        """x [B, T, d_model]; positions [2T-1, d_model] from +(T-1) down; hidden bool[B, 1, T, T], True = masked."""
        frames = x.shape[1]
        q, k, v = (self.split_heads(f(x)) for f in (self.linear_q, self.linear_k, self.linear_v))
        p = self.linear_pos(positions).view(-1, self.heads, self.head_size).permute(1, 2, 0)
        by_content = torch.matmul(q + self.pos_bias_u[:, None], k.transpose(-2, -1))
        by_position = torch.matmul(q + self.pos_bias_v[:, None], p)
        # Row q of by_position starts at distance q - 0 in column T-1-q: padding one column and re-viewing the
        # block shifts every row by its own index (the "relative shift" of Transformer-XL).
        padded = F.pad(by_position, (1, 0)).view(*by_position.shape[:2], 2 * frames, frames)
        by_position = padded[:, :, 1:].reshape(by_position.shape)[..., :frames]
        scores = (by_content + by_position) / math.sqrt(self.head_size)
        weights = scores.float().masked_fill(hidden, MASKED).softmax(-1).masked_fill(hidden, 0.0)
        return self.merge_heads(torch.matmul(weights.to(v.dtype), v))


class CausalConvolution(nn.Module):
    """Pointwise -> GLU -> causal depthwise -> LayerNorm -> SiLU -> pointwise. ``batch_norm`` is NeMo's key name."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        d, self.kernel = config.d_model, config.conv_kernel
        self.pointwise_conv1 = nn.Conv1d(d, 2 * d, 1, bias=config.use_bias)
        self.depthwise_conv = nn.Conv1d(d, d, self.kernel, groups=d, bias=config.use_bias)
        self.batch_norm = nn.LayerNorm(d)
        self.pointwise_conv2 = nn.Conv1d(d, d, 1, bias=config.use_bias)

    def gate(self, x: Tensor) -> Tensor:
        """Pointwise convolution and gated linear unit, [B, T, d_model] -> the same shape."""
        return F.glu(F.linear(x, self.pointwise_conv1.weight[:, :, 0], self.pointwise_conv1.bias), dim=-1)

    def finish(self, x: Tensor) -> Tensor:
        """What follows the depthwise convolution, [B, T, d_model] -> the same shape."""
        x = F.silu(self.batch_norm(x))
        return F.linear(x, self.pointwise_conv2.weight[:, :, 0], self.pointwise_conv2.bias)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [B, T, d_model], mask float[B, T, 1] with 1.0 on valid frames."""
        x = (self.gate(x) * mask.to(x.dtype)).transpose(1, 2)
        x = self.depthwise_conv(F.pad(x, (self.kernel - 1, 0)))
        return self.finish(x.transpose(1, 2))


class ConformerLayer(nn.Module):
    """Macaron layer with residuals; the offline path. :mod:`streaming` runs the same modules step by step."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        for name in ("feed_forward1", "self_att", "conv", "feed_forward2", "out"):
            setattr(self, f"norm_{name}", nn.LayerNorm(config.d_model))
        self.feed_forward1 = FeedForward(config)
        self.feed_forward2 = FeedForward(config)
        self.self_attn = RelativeAttention(config)
        self.conv = CausalConvolution(config)

    def forward(self, x: Tensor, positions: Tensor, hidden: Tensor, mask: Tensor) -> Tensor:
        x = x + 0.5 * self.feed_forward1(self.norm_feed_forward1(x))
        x = x + self.self_attn(self.norm_self_att(x), positions, hidden)
        x = x + self.conv(self.norm_conv(x), mask)
        x = x + 0.5 * self.feed_forward2(self.norm_feed_forward2(x))
        return self.norm_out(x)
