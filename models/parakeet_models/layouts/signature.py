"""Inputs and outputs of a graph file, of whatever kind, read without running it.

ONNX files are opened by ONNX Runtime with all optimisation off; of Core ML models only the description is read: of a
compiled folder (``.mlmodelc``) its ``metadata.json``, which needs no coremltools, of an ``.mlpackage`` its protobuf.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parakeet_models.layouts.errors import LayoutError

SUFFIXES = (".onnx", ".mlmodelc", ".mlpackage")
COMPILED_DESCRIPTION = "metadata.json"
ONNX_TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
}
COMPILED_TYPES = {"Float16": "float16", "Float32": "float32", "Double": "float64", "Int32": "int32"}
PACKAGE_TYPES = {65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32"}
"""``ArrayFeatureType.ArrayDataType`` of the model description."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its shape, None where a size is free, and NumPy's name of its element type."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str

    @property
    def real(self) -> bool:
        """Floating-point numbers."""
        return self.dtype.startswith("float")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a graph takes and gives, by name, in the order of the file; ``metadata`` is the file's own text."""

    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_signature(path: Path) -> Signature:
    """Describe a graph file.

    Raises:
        LayoutError: the file cannot be read as what its ending says.
    """
    if path.suffix == ".onnx":
        return _of_onnx(path)
    if path.suffix == ".mlmodelc":
        return _of_compiled(path)
    return _of_package(path)


def _of_onnx(path: Path) -> Signature:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4  # the error below is enough
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each of its status codes
        raise LayoutError(
            f"{path}: not an ONNX model that ONNX Runtime can load ({error}); copy or download it again"
        ) from None
    ports = (_ports_of_onnx(session.get_inputs()), _ports_of_onnx(session.get_outputs()))
    return Signature(*ports, dict(session.get_modelmeta().custom_metadata_map))


def _ports_of_onnx(nodes: Any) -> dict[str, Port]:
    return {
        node.name: Port(
            node.name,
            tuple(size if isinstance(size, int) and size > 0 else None for size in node.shape),
            ONNX_TYPES.get(node.type, node.type),
        )
        for node in nodes
    }


def _of_compiled(path: Path) -> Signature:
    description = path / COMPILED_DESCRIPTION
    try:
        (content, *_) = json.loads(description.read_text(encoding="utf-8"))
        inputs, outputs = (
            {
                port["name"]: Port(
                    port["name"], tuple(json.loads(port["shape"])), COMPILED_TYPES[port["dataType"]]
                )
                for port in content[schema]
                if port["type"] == "MultiArray"
            }
            for schema in ("inputSchema", "outputSchema")
        )
    except FileNotFoundError:
        raise LayoutError(
            f"{path}: no {COMPILED_DESCRIPTION}, which every compiled Core ML model has; download it again"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LayoutError(
            f"{description}: does not describe a Core ML model ({error!r}); download it again"
        ) from None
    return Signature(inputs, outputs, content.get("userDefinedMetadata") or {})


def _of_package(path: Path) -> Signature:
    # It warns about each of its libraries that is missing off the Mac; reading a description needs none of them.
    logging.getLogger("coremltools").setLevel(logging.ERROR)
    try:
        from coremltools.proto import Model_pb2
    except ImportError:
        raise LayoutError(
            f"{path}: reading .mlpackage needs coremltools: pip install 'parakeet-live[coreml]'"
        ) from None
    found = sorted(path.glob("Data/com.apple.CoreML/*.mlmodel"))
    spec = Model_pb2.Model()
    try:
        spec.ParseFromString(found[0].read_bytes())
    except Exception as error:
        raise LayoutError(f"{path}: not a Core ML package ({error!r}); copy or download it again") from None
    interface = spec.description
    return Signature(
        _ports_of_package(interface.input),
        _ports_of_package(interface.output),
        dict(interface.metadata.userDefined),
    )


def _ports_of_package(features: Any) -> dict[str, Port]:
    return {
        feature.name: Port(
            feature.name,
            tuple(feature.type.multiArrayType.shape),
            PACKAGE_TYPES.get(feature.type.multiArrayType.dataType, "unknown"),
        )
        for feature in features
        if feature.type.WhichOneof("Type") == "multiArrayType"
    }
