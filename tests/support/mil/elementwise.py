"""Operations on each element: arithmetic, comparisons, activations, choices."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from support.mil.registry import operation


def _floor_div(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="floor")


BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "floor_div": _floor_div,
    "mod": torch.remainder,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
}
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "cos": torch.cos,
    "erf": torch.erf,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "floor": torch.floor,
    "identity": lambda x: x,
    "logical_not": torch.logical_not,
    "relu": F.relu,
    "round": torch.round,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "silu": F.silu,
    "sin": torch.sin,
    "softsign": F.softsign,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
}

# PyTorch calls the parameters otherwise, hence the functions around them.
for _name, _function in UNARY.items():
    operation(_name)(lambda x, function=_function: function(x))
for _name, _function in BINARY.items():
    operation(_name, tensors="x y")(lambda x, y, function=_function: function(x, y))


@operation("real_div", tensors="x y")
def real_div(x: Tensor, y: Tensor) -> Tensor:
    if not x.is_floating_point():
        raise TypeError("real_div of whole numbers is not defined well enough to be interpreted")
    return x / y


@operation("clip")
def clip(x: Tensor, alpha: float, beta: float) -> Tensor:
    return x.clamp(alpha, beta)


@operation("threshold")
def threshold(x: Tensor, alpha: float) -> Tensor:
    return x.clamp(min=alpha)


@operation("rsqrt")
def rsqrt(x: Tensor, epsilon: float = 1e-12) -> Tensor:
    return torch.rsqrt(x + epsilon)


@operation("inverse")
def inverse(x: Tensor, epsilon: float = 1e-4) -> Tensor:
    return 1.0 / (x + epsilon)


@operation("log")
def log(x: Tensor, epsilon: float = 1e-45) -> Tensor:
    return torch.log(x + epsilon)


@operation("softplus")
def softplus(x: Tensor) -> Tensor:
    return F.softplus(x)


@operation("gelu")
def gelu(x: Tensor, mode: str = "EXACT") -> Tensor:
    if mode == "SIGMOID_APPROXIMATION":
        return x * torch.sigmoid(1.702 * x)
    return F.gelu(x, approximate="none" if mode == "EXACT" else "tanh")


@operation("select", tensors="cond a b")
def select(cond: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(cond, a, b)
