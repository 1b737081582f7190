"""Operations that move elements or make new tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from support.mil.registry import operation

operation("transpose")(lambda x, perm: x.permute(perm))
operation("concat", tensors="values")(
    lambda values, axis, interleave=False: (
        torch.cat(values, axis) if not interleave else _interleave(values, axis)
    )
)
operation("stack", tensors="values")(lambda values, axis: torch.stack(values, axis))
operation("tile")(lambda x, reps: x.repeat(reps))
operation("reverse")(lambda x, axes=None: x.flip(range(x.ndim) if axes is None else axes))
operation("shape")(lambda x: torch.tensor(x.shape, dtype=torch.int32))
operation("range_1d", tensors="start end step")(
    lambda start, end, step: torch.arange(start.item(), end.item(), step.item(), dtype=start.dtype)
)
operation("fill", tensors="value")(lambda shape, value: value.expand(_list(shape)).clone())
operation("fill_like", tensors="ref_tensor value")(
    lambda ref_tensor, value: value.expand(ref_tensor.shape).clone()
)


def _list(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _interleave(values: Sequence[Tensor], axis: int) -> Tensor:
    axis %= values[0].ndim
    return torch.stack(list(values), axis + 1).flatten(axis, axis + 1)


@operation("reshape")
def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """0 keeps the dimension at its place, -1 is inferred."""
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


@operation("expand_dims")
def expand_dims(x: Tensor, axes: Sequence[int]) -> Tensor:
    rank = x.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operation("squeeze")
def squeeze(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operation("split")
def split(
    x: Tensor, axis: int, num_splits: int | None = None, split_sizes: Sequence[int] | None = None
) -> tuple[Tensor, ...]:
    if split_sizes is not None:
        return torch.split(x, list(split_sizes), axis)
    assert num_splits is not None
    return torch.split(x, x.shape[axis] // num_splits, axis)


def _region(
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    stride: Sequence[int] | None,
    begin_mask: Sequence[bool] | None,
    end_mask: Sequence[bool] | None,
    squeeze_mask: Sequence[bool] | None,
) -> tuple[slice | int, ...]:
    region: list[slice | int] = []
    for axis in range(len(shape)):
        if squeeze_mask is not None and squeeze_mask[axis]:
            region.append(begin[axis])
            continue
        step = 1 if stride is None else stride[axis]
        if step < 0:
            raise NotImplementedError("slices that run backwards")
        first = None if begin_mask is not None and begin_mask[axis] else begin[axis]
        last = None if end_mask is not None and end_mask[axis] else end[axis]
        region.append(slice(first, last, step))
    return tuple(region)


@operation("slice_by_index")
def slice_by_index(
    x: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    stride: Sequence[int] | None = None,
    begin_mask: Sequence[bool] | None = None,
    end_mask: Sequence[bool] | None = None,
    squeeze_mask: Sequence[bool] | None = None,
) -> Tensor:
    return x[_region(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask)]


@operation("slice_update", tensors="x update")
def slice_update(
    x: Tensor,
    update: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    stride: Sequence[int] | None = None,
    begin_mask: Sequence[bool] | None = None,
    end_mask: Sequence[bool] | None = None,
    squeeze_mask: Sequence[bool] | None = None,
) -> Tensor:
    x = x.clone()
    x[_region(x.shape, begin, end, stride, begin_mask, end_mask, squeeze_mask)] = update
    return x


@operation("slice_by_size")
def slice_by_size(x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """A size of -1 means up to the end."""
    region = [slice(b, None if s == -1 else b + s) for b, s in zip(begin, size, strict=True)]
    return x[tuple(region)]


@operation("pad")
def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", constant_val: float = 0.0) -> Tensor:
    """``pad`` has two numbers for each of the last axes, the first axis first; PyTorch wants the last first."""
    pairs = [pad[i : i + 2] for i in range(0, len(pad), 2)]
    reversed_pairs = [size for pair in reversed(pairs) for size in pair]
    if mode == "constant":
        return F.pad(x, reversed_pairs, value=constant_val)
    return F.pad(x, reversed_pairs, mode=mode)


@operation("cumsum")
def cumsum(x: Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    if exclusive or reverse:
        raise NotImplementedError("exclusive or reversed cumulative sums")
    return x.cumsum(axis, dtype=x.dtype)


@operation("gather", tensors="x indices")
def gather(
    x: Tensor, indices: Tensor, axis: int = 0, batch_dims: int = 0, validate_indices: bool = False
) -> Tensor:
    if batch_dims:
        raise NotImplementedError("gather with batch dimensions")
    axis %= x.ndim
    taken = x.index_select(axis, indices.flatten().long() % x.shape[axis])
    return taken.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


@operation("gather_along_axis", tensors="x indices")
def gather_along_axis(x: Tensor, indices: Tensor, axis: int = 0, validate_indices: bool = False) -> Tensor:
    return torch.gather(x, axis, indices.long() % x.shape[axis])


@operation("one_hot", tensors="indices on_value off_value")
def one_hot(
    indices: Tensor, one_hot_vector_size: int, on_value: Tensor, off_value: Tensor, axis: int = -1
) -> Tensor:
    hot = torch.where(F.one_hot(indices.long(), one_hot_vector_size).bool(), on_value, off_value)
    return hot.movedim(-1, axis)
