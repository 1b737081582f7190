"""The RNN transducer loss (Graves, 2012) on a CPU: one numba kernel over gathered log-probabilities.

The kernel runs the forward and backward recursions of every row and returns the gradient with respect to the
blank and label log-probabilities, so the network's own graph ends at two gathers from a log-softmax. FastEmit
(Yu et al., 2021) scales the label gradient by 1 + lambda, which makes tokens come earlier.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

_NEVER = -1e30


@numba.njit(cache=True, fastmath=True)
def _log_add(a, b):  # type: ignore[no-untyped-def]
    if a < b:
        a, b = b, a
    if b < -1e29:
        return a
    return a + math.log1p(math.exp(b - a))


@numba.njit(cache=True, fastmath=True)
def _transduce(blank, label, frames, labels, blank_gradient, label_gradient, loss, fast_emit):  # type: ignore[no-untyped-def]
    """blank, label: [B, T, U+1], [B, T, U] log-probabilities; the gradients and loss [B] are written in place."""
    for row in range(blank.shape[0]):
        last_t, last_u = frames[row] - 1, labels[row]
        alpha = np.full((last_t + 1, last_u + 1), _NEVER, np.float32)
        beta = np.full((last_t + 1, last_u + 1), _NEVER, np.float32)
        alpha[0, 0] = 0.0
        for t in range(last_t + 1):
            for u in range(last_u + 1):
                if t > 0:
                    alpha[t, u] = _log_add(alpha[t, u], alpha[t - 1, u] + blank[row, t - 1, u])
                if u > 0:
                    alpha[t, u] = _log_add(alpha[t, u], alpha[t, u - 1] + label[row, t, u - 1])
        total = alpha[last_t, last_u] + blank[row, last_t, last_u]
        loss[row] = -total
        beta[last_t, last_u] = blank[row, last_t, last_u]
        for t in range(last_t, -1, -1):
            for u in range(last_u, -1, -1):
                if t < last_t:
                    beta[t, u] = _log_add(beta[t, u], beta[t + 1, u] + blank[row, t, u])
                if u < last_u:
                    beta[t, u] = _log_add(beta[t, u], beta[t, u + 1] + label[row, t, u])
        for t in range(last_t + 1):
            for u in range(last_u + 1):
                if t < last_t:
                    through = alpha[t, u] + blank[row, t, u] + beta[t + 1, u] - total
                    blank_gradient[row, t, u] = -math.exp(min(through, 0.0))
                elif u == last_u:
                    blank_gradient[row, t, u] = -1.0
                if u < last_u:
                    through = alpha[t, u] + label[row, t, u] + beta[t, u + 1] - total
                    label_gradient[row, t, u] = -(1.0 + fast_emit) * math.exp(min(through, 0.0))


class _Transducer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, blank: Tensor, label: Tensor, frames: Tensor, labels: Tensor, fast_emit: float
    ) -> Tensor:
        blank_gradient, label_gradient = torch.zeros_like(blank), torch.zeros_like(label)
        loss = torch.zeros(blank.shape[0])
        arrays = [x.numpy() for x in (blank, label, frames, labels, blank_gradient, label_gradient, loss)]
        _transduce(*arrays, fast_emit)  # type: ignore[call-arg]
        ctx.save_for_backward(blank_gradient, label_gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        scale = upstream[0][:, None, None]
        blank_gradient, label_gradient = ctx.saved_tensors
        return blank_gradient * scale, label_gradient * scale, None, None, None


def transducer_loss(
    logits: Tensor,
    targets: Tensor,
    frames: Tensor,
    labels: Tensor,
    blank: int,
    fast_emit: float = 0.0,
    label_bias: Tensor | None = None,
) -> Tensor:
    """Negative log-likelihood per row, float[B].

    logits [B, T, U+1, V+1], targets int64[B, U], frames and labels int64[B] (valid lengths, frames ≥ 1).
    `label_bias` [B, T, U] is added to the label log-probabilities: a negative one disfavours the alignments
    that put label u at frame t (alignment-restricted transducer: Mahadeokar et al., 2021).
    """
    log_probabilities = logits.float().log_softmax(-1)
    width = targets.shape[1]
    index = targets[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
    label = log_probabilities[:, :, :width].gather(-1, index).squeeze(-1).contiguous()
    if label_bias is not None:
        label = label + label_bias
    blanks = log_probabilities[..., blank].contiguous()
    loss: Tensor = _Transducer.apply(blanks, label, frames, labels, fast_emit)  # type: ignore[no-untyped-call]
    return loss
