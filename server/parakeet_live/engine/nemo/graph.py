"""A graph of a published layout, whatever runs it: arrays in by name, arrays out by name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parakeet_live.engine.backend import EngineError
from parakeet_models.layouts.signature import Port

Array = NDArray[Any]


class Graph(Protocol):
    """May be called on several threads."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Outputs by name. They may be half precision and have gaps between rows; they are the caller's to keep."""
        ...


class CoreMLModel(Protocol):
    """coremltools' ``MLModel`` and ``CompiledMLModel``, as far as they are used here."""

    def predict(self, data: dict[str, Any], /) -> Mapping[str, Any]: ...


OpenModel = Callable[[Path, str], CoreMLModel]
"""Loads a Core ML model (``.mlmodelc`` or ``.mlpackage``) for the compute units of this name."""


class OnnxGraph:
    """An ONNX file; ONNX Runtime's sessions are safe to share."""

    def __init__(self, path: Path) -> None:
        import onnxruntime as ort

        from parakeet_live.engine.onnx import PROVIDERS, session_options

        self._session = ort.InferenceSession(str(path), session_options(), providers=PROVIDERS)
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(inputs)), strict=True))


class CoreMLGraph:
    """A Core ML model, which one thread may use at a time."""

    def __init__(self, model: CoreMLModel) -> None:
        self._model = model
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        with self._lock:
            # A dictionary of its own: predict may replace what is in it.
            return self._model.predict(dict(inputs))


def open_core_ml(path: Path, compute_units: str) -> CoreMLModel:
    """Load a model with coremltools.

    Raises:
        EngineError: coremltools is missing, this is no Mac, or Core ML refuses the model.
    """
    # It warns about every library of its that is missing off the Mac; the error below says it once.
    logging.getLogger("coremltools").setLevel(logging.ERROR)
    try:
        import coremltools as ct
    except ImportError:
        raise EngineError(
            f"{path}: Core ML models need coremltools: pip install 'parakeet-live[coreml]' (on a Mac)"
        ) from None
    units = ct.ComputeUnit[compute_units]
    try:
        if path.suffix == ".mlmodelc":
            model: CoreMLModel = ct.models.CompiledMLModel(str(path), units)
        else:
            model = ct.models.MLModel(str(path), compute_units=units)
    except Exception as error:  # coremltools raises whatever Core ML says
        raise EngineError(
            f"{path}: Core ML cannot load it ({error}); Core ML models run on macOS only, "
            "elsewhere use an ONNX export of the same network"
        ) from None
    return model


def shaped(port: Port, values: Array) -> Array:
    """``values`` as the graph takes them: its type, its shape (free sizes are one), without gaps."""
    shape = tuple(1 if size is None else size for size in port.shape)
    return np.ascontiguousarray(values, port.dtype).reshape(shape)


def real(values: Array) -> NDArray[np.float32]:
    """An output as float32 without gaps, whatever its type and strides."""
    return np.ascontiguousarray(values, np.float32)
