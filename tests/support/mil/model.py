"""The interpreter behind the surface of coremltools' model objects."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from coremltools.proto import FeatureTypes_pb2
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from support.mil.program import Call, load_program, load_spec, plain

Array = NDArray[Any]
_Types = FeatureTypes_pb2.ArrayFeatureType
ARRAY_TYPES = {
    _Types.FLOAT16: np.dtype(np.float16),
    _Types.FLOAT32: np.dtype(np.float32),
    _Types.DOUBLE: np.dtype(np.float64),
    _Types.INT32: np.dtype(np.int32),
}
STRIDE_BYTES = 64
"""The Neural Engine pads the last axis of what it writes to a multiple of this."""


@dataclass(frozen=True, slots=True)
class Feature:
    """An input, output or state: its shape and element type."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class InterpretedState:
    """Stands for ``MLState``: the states of one stream, in fp16, zero at the start."""

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._values = {name: np.zeros(feature.shape, feature.dtype) for name, feature in features.items()}
        self.lock = threading.Lock()

    def read_state(self, name: str) -> Array:
        """A copy of one state."""
        return self._values[name].copy()

    def write_state(self, name: str, value: ArrayLike) -> None:
        """Replace one state; the shape must fit."""
        self._values[name][...] = value


class InterpretedModel:
    """Stands for ``MLModel`` and ``CompiledMLModel``: same arguments, ``predict`` and ``make_state``.

    Args:
        path: an ``.mlpackage``.
        compute_units: accepted and ignored.
        function_name: of a package with several functions; by default the package's default function.
        optimization_hints: accepted and ignored.
        half: compute fp16 programs in fp16. By default they run in fp32, which is faster here and shows what
            the weights and caches lost, without the rounding of intermediate results.
        strided: give outputs the gaps that Core ML's outputs may have, so that careless readers are found out.
    """

    def __init__(
        self,
        path: str | Path,
        compute_units: Any = None,
        function_name: str | None = None,
        optimization_hints: Mapping[str, Any] | None = None,
        *,
        half: bool = False,
        strided: bool = False,
    ) -> None:
        package = Path(path)
        self._spec = load_spec(package)
        self._half, self._strided = half, strided
        self.function_name = function_name
        description = self._spec.description
        interface: Any = description
        name = "main"
        if description.functions:
            name = function_name or description.defaultFunctionName
            found = [function for function in description.functions if function.name == name]
            if not found:
                known = ", ".join(function.name for function in description.functions)
                raise ValueError(f"{package}: no function {name!r}; it has {known}")
            interface = found[0]
        elif function_name not in (None, "main"):
            raise ValueError(f"{package}: has one function only, not {function_name!r}")
        self.inputs = _features(interface.input)
        self.outputs = _features(interface.output)
        self.states = _features(interface.state)
        self.input_description = {item.name: item.shortDescription for item in interface.input}
        self.output_description = {item.name: item.shortDescription for item in interface.output}
        self.user_defined_metadata = dict(description.metadata.userDefined)
        self._program = load_program(self._spec, package, name, self._real)
        self._lock = threading.Lock()

    def get_spec(self) -> Any:
        """The protobuf description, as ``MLModel.get_spec``."""
        return self._spec

    def operations(self) -> list[str]:
        """Kinds of the operations of this function, in order, without constants."""
        return [call.kind for call in self._program.calls]

    def make_state(self) -> InterpretedState:
        """A new stream's state."""
        if not self.states:
            raise ValueError("this model has no state")
        return InterpretedState(self.states)

    @torch.inference_mode()
    def predict(
        self, data: Mapping[str, ArrayLike], state: InterpretedState | None = None
    ) -> dict[str, Array]:
        """Run the function once.

        Raises:
            ValueError: an input is missing, unknown or of the wrong shape, or the state is missing or superfluous.
            RuntimeError: another thread is using this model or this state, which Core ML does not allow.
        """
        if (state is None) == bool(self.states):
            raise ValueError("this model needs a state" if self.states else "this model has no state")
        values: dict[str, Tensor] = dict(self._program.constants)
        for name, feature in self.inputs.items():
            values[name] = self._real(torch.from_numpy(_checked(name, feature, data)))
        unknown = sorted(set(data) - set(self.inputs))
        if unknown:
            raise ValueError(f"unknown inputs: {', '.join(unknown)}; known: {', '.join(self.inputs)}")
        with _exclusive(self._lock, "model"), _exclusive(state.lock if state else None, "state"):
            for call in self._program.calls:
                self._run(call, values, state)
        return {
            name: self._deliver(values[output], self.outputs[name])
            for name, output in zip(self.outputs, self._program.outputs, strict=True)
        }

    def _run(self, call: Call, values: dict[str, Tensor], state: InterpretedState | None) -> None:
        if call.kind == "read_state":
            assert state is not None
            values[call.outputs[0]] = self._real(torch.from_numpy(state.read_state(call.constants["name"])))
            return
        if call.kind == "coreml_update_state":
            assert state is not None
            (source,) = call.variables.values()
            assert isinstance(source, str)
            state.write_state(call.constants["name"], values[source].numpy())
            # What is read back has been rounded to the state's type.
            values[call.outputs[0]] = self._real(torch.from_numpy(state.read_state(call.constants["name"])))
            return
        arguments = dict(call.constants)
        for name, source in call.variables.items():
            value: Any = values[source] if isinstance(source, str) else [values[item] for item in source]
            arguments[name] = plain(value) if name in call.plain else value
        result = call.function(**arguments)
        results = result if isinstance(result, (tuple, list)) else (result,)
        values.update(zip(call.outputs, results, strict=True))

    def _real(self, tensor: Tensor) -> Tensor:
        """fp16 as fp32, unless the arithmetic is to be fp16."""
        return tensor.float() if tensor.dtype == torch.float16 and not self._half else tensor

    def _deliver(self, tensor: Tensor, feature: Feature) -> Array:
        array = tensor.numpy().astype(feature.dtype)
        if not self._strided or array.ndim == 0:
            return array
        unit = max(1, STRIDE_BYTES // feature.dtype.itemsize)
        last = -(-array.shape[-1] // unit) * unit
        padded = np.zeros((*array.shape[:-1], last), feature.dtype)
        padded[..., : array.shape[-1]] = array
        return padded[..., : array.shape[-1]]


def _features(descriptions: Any) -> dict[str, Feature]:
    features = {}
    for item in descriptions:
        kind = item.type
        array = kind.stateType.arrayType if kind.WhichOneof("Type") == "stateType" else kind.multiArrayType
        features[item.name] = Feature(tuple(array.shape), ARRAY_TYPES[array.dataType])
    return features


def _checked(name: str, feature: Feature, data: Mapping[str, ArrayLike]) -> Array:
    """An input in the declared type; Core ML converts floating-point inputs by itself."""
    if name not in data:
        raise ValueError(f"input {name!r} is missing")
    array = np.asarray(data[name])
    if array.shape != feature.shape:
        raise ValueError(f"input {name!r} has shape {array.shape}, the model takes {feature.shape}")
    return np.array(array, feature.dtype)


@contextmanager
def _exclusive(lock: threading.Lock | None, what: str) -> Iterator[None]:
    if lock is None:
        yield
        return
    if not lock.acquire(blocking=False):
        raise RuntimeError(f"two threads use one {what} at the same time")
    try:
        yield
    finally:
        lock.release()
