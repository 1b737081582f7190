"""Operations along axes: sums, maxima, softmax, normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from support.mil.registry import operation

REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "reduce_sum": lambda x, axes, keep: x.sum(axes, keepdim=keep, dtype=x.dtype),
    "reduce_mean": lambda x, axes, keep: x.mean(axes, keepdim=keep),
    "reduce_max": lambda x, axes, keep: x.amax(axes, keepdim=keep),
    "reduce_min": lambda x, axes, keep: x.amin(axes, keepdim=keep),
    "reduce_prod": lambda x, axes, keep: x.prod(axes[0], keepdim=keep, dtype=x.dtype),
    "reduce_sum_square": lambda x, axes, keep: x.square().sum(axes, keepdim=keep),
    "reduce_l2_norm": lambda x, axes, keep: x.square().sum(axes, keepdim=keep).sqrt(),
    "reduce_log_sum_exp": lambda x, axes, keep: x.logsumexp(axes, keepdim=keep),
}


def _reduction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reduce(x: Tensor, axes: Sequence[int] | None = None, keep_dims: bool = False) -> Tensor:
        return function(x, tuple(range(x.ndim)) if axes is None else tuple(axes), keep_dims)

    return reduce


for _name, _function in REDUCTIONS.items():
    operation(_name)(_reduction(_function))


@operation("reduce_argmax")
def reduce_argmax(x: Tensor, axis: int = -1, keep_dims: bool = False, output_dtype: str = "int32") -> Tensor:
    return x.argmax(axis, keepdim=keep_dims).int()


@operation("topk")
def topk(
    x: Tensor,
    k: int = 1,
    axis: int = -1,
    ascending: bool = False,
    sort: bool = True,
    return_indices: bool = True,
    output_indices_dtype: str = "int32",
) -> Any:
    values, indices = x.topk(k, axis, largest=not ascending, sorted=sort)
    return (values, indices.int()) if return_indices else values


@operation("softmax")
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    return torch.softmax(x, axis)


@operation("layer_norm", tensors="x gamma beta")
def layer_norm(
    x: Tensor,
    axes: Sequence[int] | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """gamma and beta have the shape of the normalised axes, which need not be the last."""
    axes = [axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)]
    last = list(range(x.ndim - len(axes), x.ndim))
    moved = x.movedim(axes, last)
    return F.layer_norm(moved, [x.shape[axis] for axis in axes], gamma, beta, epsilon).movedim(last, axes)


@operation("batch_norm", tensors="x mean variance gamma beta")
def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    return F.batch_norm(x, mean, variance, gamma, beta, eps=epsilon)


@operation("instance_norm", tensors="x gamma beta")
def instance_norm(
    x: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, epsilon: float = 1e-5
) -> Tensor:
    return F.instance_norm(x, weight=gamma, bias=beta, eps=epsilon)
