"""A graph of a published layout, whatever runs it: arrays in by name, arrays out by name."""

from __future__ import annotations

from collections.abc import Mapping
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


class OnnxGraph:
    """An ONNX file; ONNX Runtime's sessions are safe to share."""

    def __init__(self, path: Path) -> None:
        import onnxruntime as ort

        from parakeet_live.engine.onnx import PROVIDERS, session_options

        self._path = path
        self._session = ort.InferenceSession(str(path), session_options(), providers=PROVIDERS)
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        try:
            outputs = self._session.run(self._outputs, dict(inputs))
        except Exception as error:  # onnxruntime has a class for each of its status codes
            raise EngineError(
                f"{self._path}: ONNX Runtime cannot run it ({error}); the file is damaged or of another export: "
                "download it again"
            ) from error
        return dict(zip(self._outputs, outputs, strict=True))


def shaped(port: Port, values: Array) -> Array:
    """``values`` as the graph takes them: its type, its shape (free sizes are one), without gaps."""
    shape = tuple(1 if size is None else size for size in port.shape)
    return np.ascontiguousarray(values, port.dtype).reshape(shape)


def real(values: Array) -> NDArray[np.float32]:
    """An output as float32 without gaps, whatever its type and strides."""
    return np.ascontiguousarray(values, np.float32)
