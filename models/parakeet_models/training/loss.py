"""The RNN transducer loss (Graves, 2012) on a CPU: one numba kernel over gathered log-probabilities.

Lattices are ragged: lattice r has frames[r] x (labels[r] + 1) nodes, one after the other in flat arrays, row by row of
time. With an own lattice for each utterance of a stream, and no padding, the joint network has a fifth of the work.

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
    """blank, label: float[N] log-probabilities; the gradients [N] and loss [R] are written in place."""
    base = 0
    for row in range(len(frames)):
        last_t, last_u = frames[row] - 1, labels[row]
        width = last_u + 1
        alpha = np.full((last_t + 1, width), _NEVER, np.float32)
        beta = np.full((last_t + 1, width), _NEVER, np.float32)
        alpha[0, 0] = 0.0
        for t in range(last_t + 1):
            for u in range(width):
                at = base + t * width + u
                if t > 0:
                    alpha[t, u] = _log_add(alpha[t, u], alpha[t - 1, u] + blank[at - width])
                if u > 0:
                    alpha[t, u] = _log_add(alpha[t, u], alpha[t, u - 1] + label[at - 1])
        end = base + (last_t + 1) * width - 1
        total = alpha[last_t, last_u] + blank[end]
        loss[row] = -total
        beta[last_t, last_u] = blank[end]
        for t in range(last_t, -1, -1):
            for u in range(last_u, -1, -1):
                at = base + t * width + u
                if t < last_t:
                    beta[t, u] = _log_add(beta[t, u], beta[t + 1, u] + blank[at])
                if u < last_u:
                    beta[t, u] = _log_add(beta[t, u], beta[t, u + 1] + label[at])
        for t in range(last_t + 1):
            for u in range(width):
                at = base + t * width + u
                if t < last_t:
                    through = alpha[t, u] + blank[at] + beta[t + 1, u] - total
                    blank_gradient[at] = -math.exp(min(through, 0.0))
                elif u == last_u:
                    blank_gradient[at] = -1.0
                if u < last_u:
                    through = alpha[t, u] + label[at] + beta[t, u + 1] - total
                    label_gradient[at] = -(1.0 + fast_emit) * math.exp(min(through, 0.0))
        base += (last_t + 1) * width


class _Transducer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, blank: Tensor, label: Tensor, frames: Tensor, labels: Tensor, fast_emit: float
    ) -> Tensor:
        blank_gradient, label_gradient = torch.zeros_like(blank), torch.zeros_like(label)
        loss = torch.zeros(len(frames))
        arrays = [x.numpy() for x in (blank, label, frames, labels, blank_gradient, label_gradient, loss)]
        _transduce(*arrays, fast_emit)  # type: ignore[call-arg]
        nodes = frames * (labels + 1)
        ctx.save_for_backward(blank_gradient, label_gradient, nodes)
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        blank_gradient, label_gradient, nodes = ctx.saved_tensors
        scale = torch.zeros_like(blank_gradient)
        spread = upstream[0].repeat_interleave(nodes)
        scale[: len(spread)] = spread
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
    """Negative log-likelihood per lattice, float[R].

    logits [N, V + 1] and targets int64[N] (the next label) of every node, N at least the sum of frames * (labels + 1);
    frames and labels int64[R] (frames >= 1). `label_bias` [N] is added to the label log-probabilities: a negative one
    disfavours the alignments through that node (alignment-restricted transducer: Mahadeokar et al., 2021).
    """
    log_probabilities = logits.float().log_softmax(-1)
    # One gather for both: the gradient of each is a matrix as large as the logits.
    chosen = log_probabilities.gather(-1, torch.stack([torch.full_like(targets, blank), targets], -1))
    blanks, label = chosen[:, 0].contiguous(), chosen[:, 1].contiguous()
    if label_bias is not None:
        label = label + label_bias
    loss: Tensor = _Transducer.apply(blanks, label, frames, labels, fast_emit)  # type: ignore[no-untyped-call]
    return loss
