"""Eight-bit matrix products whose result for one stream does not depend on the others in its batch.

ONNX Runtime's ``quantize_dynamic`` takes one scale over a whole activation tensor, so a loud stream coarsens the
scale of its quiet batch mates and their words can change. Here every *row* (one encoder frame of one stream) has its
own scale, computed in the graph; the integer product is exact, so a row's result is bit-equal alone and in any batch.

Weights: int8, symmetric, one scale per output column. Activations: uint8 around 128, one scale per row, which is what
the VNNI instructions of x86 multiply fastest. Measured against the alternatives in docs/performance.md.
"""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

LEVELS = 127.0
"""Largest magnitude of a quantised value on either side of zero."""
MICROSOFT_DOMAIN = "com.microsoft"
SMALLEST_PEAK = np.float32(1e-12)
"""Keeps the scale of an all-zero column of weights from being zero."""


def quantize_matmuls(model: onnx.ModelProto) -> int:
    """Replace, in place, every product by a constant 2-D matrix; returns how many were replaced.

    Convolutions, the attention's products of activations, and everything else stay fp32.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    rows = _RowQuantizer()
    weights: dict[str, tuple[str, str]] = {}
    nodes: list[onnx.NodeProto] = []
    replaced = 0
    for node in graph.node:
        weight = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2:
            nodes.append(node)
            continue
        if weight.name not in weights:
            values, scales = quantize_columns(numpy_helper.to_array(weight).astype(np.float32))
            names = f"{weight.name}.int8", f"{weight.name}.scale"
            graph.initializer.append(numpy_helper.from_array(values, names[0]))
            graph.initializer.append(numpy_helper.from_array(scales, names[1]))
            weights[weight.name] = names
        new, quantized, peak = rows.quantize(node.input[0])
        nodes += new
        product = f"{node.output[0]}.unscaled"
        nodes.append(
            helper.make_node(
                "MatMulIntegerToFloat",
                [quantized, weights[weight.name][0], rows.STEP, weights[weight.name][1], rows.ZERO],
                [product],
                domain=MICROSOFT_DOMAIN,
            )
        )
        nodes.append(helper.make_node("Mul", [product, peak], list(node.output)))
        replaced += 1
    if replaced:
        graph.initializer.extend(rows.constants())
        model.opset_import.append(helper.make_opsetid(MICROSOFT_DOMAIN, 1))
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unused_constants(model)
    return replaced


def quantize_columns(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """float32[K, N] -> int8[K, N] and one scale per column, float32[N]."""
    scales = np.maximum(np.abs(weight).max(axis=0), SMALLEST_PEAK) / np.float32(LEVELS)
    values = np.clip(np.rint(weight / scales), -LEVELS, LEVELS).astype(np.int8)
    return values, scales.astype(np.float32)


class _RowQuantizer:
    """Adds the nodes that quantise an activation by rows; an activation used twice is quantised once."""

    STEP = "row_quantizer.step"
    ZERO = "row_quantizer.zero"

    def __init__(self) -> None:
        self._done: set[str] = set()

    def quantize(self, name: str) -> tuple[list[onnx.NodeProto], str, str]:
        """New nodes, and the names of the quantised tensor and of the peaks [.., 1] to multiply the product by."""
        magnitude, peak = f"{name}.abs", f"{name}.peak"
        normalised, quantized = f"{name}.normalised", f"{name}.uint8"
        if name in self._done:
            return [], quantized, peak
        self._done.add(name)
        nodes = [
            helper.make_node("Abs", [name], [magnitude]),
            helper.make_node("ReduceMax", [magnitude], [peak], axes=[-1], keepdims=1),
            # An all-zero row divides zero by zero; whatever integers that becomes, its product is multiplied by a
            # peak of zero.
            helper.make_node("Div", [name, peak], [normalised]),
            helper.make_node("QuantizeLinear", [normalised, self.STEP, self.ZERO], [quantized]),
        ]
        return nodes, quantized, peak

    def constants(self) -> list[onnx.TensorProto]:
        """The two constants the nodes refer to."""
        return [
            numpy_helper.from_array(np.float32(1.0 / LEVELS), self.STEP),
            numpy_helper.from_array(np.uint8(128), self.ZERO),
        ]


def _drop_unused_constants(model: onnx.ModelProto) -> None:
    used = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
