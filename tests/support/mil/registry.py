"""The operations that the interpreter knows, by their MIL names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class UnknownOperationError(Exception):
    """A program uses an operation that the interpreter does not implement."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """A function of MIL's parameters. Those in ``tensors`` arrive as tensors, all others as plain Python values."""

    function: Callable[..., Any]
    tensors: frozenset[str]


OPERATIONS: dict[str, Implementation] = {}


def operation(*names: str, tensors: str = "x") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under MIL names; ``tensors`` lists its tensor parameters, separated by spaces.

    Parameters have MIL's names and MIL's defaults. Several results are returned as a tuple.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATIONS[name] = Implementation(function, frozenset(tensors.split()))
        return function

    return register
