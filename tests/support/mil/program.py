"""Reads one function of a package and prepares it for execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coremltools as ct
import numpy as np
import torch
from coremltools.converters.mil.frontend.milproto.load import load_mil_proto
from torch import Tensor

from support.mil import elementwise, layout, products, reduce  # noqa: F401  (they register their operations)
from support.mil.registry import OPERATIONS, UnknownOperationError

WEIGHTS = Path("Data/com.apple.CoreML/weights")
DTYPES = {
    "fp16": torch.float16,
    "fp32": torch.float32,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "uint8": torch.uint8,
    "uint16": torch.int32,
    "bool": torch.bool,
}
"""PyTorch's arithmetic lacks uint16; int32 holds its values."""

Convert = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Call:
    """One operation: what to call with which constants and which computed values, and where the results go."""

    kind: str
    function: Callable[..., Any]
    constants: dict[str, Any]
    variables: dict[str, str | list[str]]
    plain: frozenset[str]
    """Variables that the operation wants as plain Python values."""
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A function ready to run."""

    calls: tuple[Call, ...]
    constants: dict[str, Tensor]
    """Constants that some operation takes together with computed values, by name."""
    outputs: tuple[str, ...]


def load_program(spec: Any, package: Path, function: str, real: Convert) -> Program:
    """Read ``function`` of a package; ``real`` converts floating-point constants to the type to compute with.

    Raises:
        UnknownOperationError: naming the operation and the package.
    """
    alone = type(spec.mlProgram)(version=spec.mlProgram.version)
    alone.functions[function].CopyFrom(spec.mlProgram.functions[function])
    block = load_mil_proto(alone, spec.specificationVersion, str(package / WEIGHTS)).functions[function]
    constants = dict(_constants(block, real))
    kept: dict[str, Tensor] = {}
    calls = []
    for op in block.operations:
        if op.op_type == "const" or op.op_type.startswith("constexpr_"):
            continue
        calls.append(_prepare(op, constants, kept, package, real))
    return Program(tuple(calls), kept, tuple(output.name for output in block.outputs))


def _constants(block: Any, real: Convert) -> Iterator[tuple[str, Any]]:
    """Every constant by name; compressed weights (``constexpr_…``) are expanded by coremltools itself."""
    for op in block.operations:
        if op.op_type == "const":
            yield op.outputs[0].name, _value(op.outputs[0].val, real)
        elif op.op_type.startswith("constexpr_"):
            output = op.outputs[0]
            value = output.val if output.val is not None else op.materialized_val_inference()
            yield output.name, _value(value, real)


def _value(value: Any, real: Convert) -> Any:
    if isinstance(value, (str, bool)) or value is None:
        return value
    array = np.asarray(value)
    if array.dtype.kind in "US":
        return str(array)
    if array.dtype == np.uint16:
        array = array.astype(np.int32)
    return real(torch.from_numpy(np.array(array)))


def plain(value: Any) -> Any:
    """A tensor as a Python number or list."""
    return value.tolist() if isinstance(value, Tensor) else value


def _prepare(
    op: Any, constants: dict[str, Any], kept: dict[str, Tensor], package: Path, real: Convert
) -> Call:
    outputs = tuple(output.name for output in op.outputs)
    kind = op.op_type
    if kind in ("read_state", "coreml_update_state"):
        return _prepare_state(op, constants, kept, outputs)
    if kind == "cast":
        dtype = DTYPES[str(_lookup(op.inputs["dtype"], constants, real))]

        def cast(x: Tensor) -> Tensor:
            return real(x.to(dtype))

        function, tensors, skipped = cast, frozenset({"x"}), {"dtype"}
    elif kind in OPERATIONS:
        implementation = OPERATIONS[kind]
        function, tensors, skipped = implementation.function, implementation.tensors, set()
    else:
        raise UnknownOperationError(
            f"{package}: operation {kind!r} ({outputs[0]}) is not interpreted; add it to tests/support/mil"
        )
    fixed: dict[str, Any] = {}
    variables: dict[str, str | list[str]] = {}
    for name, source in op.inputs.items():
        if source is None or name in skipped:
            continue
        if isinstance(source, (list, tuple)):
            values = [_lookup(item, constants, real) for item in source]
            if all(value is not None for value in values):
                fixed[name] = values if name in tensors else [plain(value) for value in values]
                continue
            kept.update({s.name: v for s, v in zip(source, values, strict=True) if v is not None})
            variables[name] = [item.name for item in source]
            continue
        value = _lookup(source, constants, real)
        if value is None:
            variables[name] = source.name
        else:
            fixed[name] = value if name in tensors else plain(value)
    return Call(kind, function, fixed, variables, frozenset(variables) - tensors, outputs)


def _prepare_state(
    op: Any, constants: dict[str, Any], kept: dict[str, Tensor], outputs: tuple[str, ...]
) -> Call:
    """The state's name is a constant of the call; the model supplies the function."""
    if op.op_type == "read_state":
        return Call("read_state", _unbound, {"name": op.inputs["input"].name}, {}, frozenset(), outputs)
    source = op.inputs["value"]
    if source.name in constants:
        kept[source.name] = constants[source.name]
    fixed = {"name": op.inputs["state"].name}
    return Call("coreml_update_state", _unbound, fixed, {"value": source.name}, frozenset(), outputs)


def _unbound(**_: Any) -> None:
    raise AssertionError("state operations are run by the model")


def _lookup(var: Any, constants: dict[str, Any], real: Convert) -> Any:
    """The value of a constant, None of anything computed."""
    if var.name in constants:
        return constants[var.name]
    if var.op is None or var.val is None:
        return None
    return _value(var.val, real)


def load_spec(package: Path) -> Any:
    """The package's model description."""
    return ct.utils.load_spec(str(package))
