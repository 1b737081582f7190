"""The network of an ONNX bundle, read back from its graphs: for converting a bundle whose checkpoint is not at hand.

The graphs hold folded weights (``network.folded``, ``export.onnx.PredictionGraph``). Most unfold exactly; two foldings
are products, of which any pair of factors will do: the position table (a projection of known sinusoids) and the
prediction network's table (embedding times input matrix). So the network that is found computes what the bundle
computes, to rounding, while those matrices differ from the trained ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

from parakeet_models.bundle import Bundle
from parakeet_models.network import NetworkConfig, ParakeetNetwork
from parakeet_models.network.conformer import ConformerLayer, RelativeAttention, sinusoidal_positions
from parakeet_models.network.streaming import MAX_STEP

UNFOLDING_TOLERANCE = 1e-5
"""Largest relative error of a table that is multiplied out of its factors again."""

Operand = tuple[str, NDArray[np.float32]]
"""The kind of an operation, and a constant it takes."""


class UnfoldError(Exception):
    """The bundle's graphs cannot be read back; the message names the reason and the remedy."""


def network_of_bundle(bundle: Bundle) -> ParakeetNetwork:
    """A network that computes what the bundle's graphs compute.

    Raises:
        UnfoldError: the bundle has eight-bit weights, another runtime, or graphs that our exporter did not write.
    """
    manifest = bundle.manifest
    if manifest.runtime != "onnx" or manifest.weights not in ("fp32", "fp16"):
        raise UnfoldError(
            f"{manifest.name} is a bundle of {manifest.weights} weights for {manifest.runtime}; "
            "convert its original, or an ONNX bundle with fp32 or fp16 weights"
        )
    network = ParakeetNetwork(NetworkConfig(**manifest.geometry.model_dump())).eval()
    try:
        with torch.no_grad():
            _read_encoder(network, _Operands(bundle.path("encoder")))
            _read_prediction(network, _Operands(bundle.path("prediction")))
            joint = _Operands(bundle.path("joint"))
            _set(network.joint.joint_net[2].weight, joint.take("Gemm"))
            _set(network.joint.joint_net[2].bias, joint.take("Gemm"))
    except ValueError as error:
        raise UnfoldError(
            f"{bundle.directory}: not written by this version's exporter ({error}); convert the original"
        ) from error
    return network


class _Operands:
    """The weights of a graph, in the order in which its operations use them."""

    def __init__(self, path: Path) -> None:
        self._operands = _operands(onnx.load(path))
        self._path = path

    def take(self, kind: str) -> Tensor:
        """The next weight, which an operation of this kind must use."""
        found, value = next(self._operands, ("nothing", np.empty(0, np.float32)))
        if found != kind:
            raise ValueError(f"{self._path.name}: {kind} expected, found {found}")
        return torch.from_numpy(value)


def _operands(model: onnx.ModelProto) -> Iterator[Operand]:
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        # A cast of what is stored as fp16, or another name for an equal constant.
        if node.op_type in ("Cast", "Identity") and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
            continue
        for name in node.input:
            if name in constants:
                value = numpy_helper.to_array(constants[name])
                if value.dtype.kind == "f" and value.size > 1:
                    yield node.op_type, np.array(value, np.float32)


def _read_encoder(network: ParakeetNetwork, operands: _Operands) -> None:
    encoder = network.encoder
    for index in (0, 2, 3, 5, 6):
        _set(encoder.pre_encode.conv[index].weight, operands.take("Conv"))
        _set(encoder.pre_encode.conv[index].bias, operands.take("Conv"))
    _read_linear(encoder.pre_encode.out, operands)
    for layer in encoder.layers:
        _read_layer(layer, operands)
    _read_linear(network.joint.enc, operands)


def _read_layer(layer: ConformerLayer, operands: _Operands) -> None:
    """In the order of ``network.folded.FoldedLayer.forward``."""
    attention, convolution = layer.self_attn, layer.conv
    _read_norm(layer.norm_feed_forward1, operands)
    _read_linear(layer.feed_forward1.linear1, operands)
    _read_linear(layer.feed_forward1.linear2, operands, 2.0)
    _read_norm(layer.norm_self_att, operands)
    _read_attention(attention, operands)
    _read_linear(attention.linear_out, operands)
    _read_norm(layer.norm_conv, operands)
    _read_linear(convolution.pointwise_conv1, operands)
    _set(convolution.depthwise_conv.weight, operands.take("Mul").t()[:, None])
    if convolution.depthwise_conv.bias is not None:
        _set(convolution.depthwise_conv.bias, operands.take("Add"))
    _read_norm(convolution.batch_norm, operands)
    _read_linear(convolution.pointwise_conv2, operands)
    _read_norm(layer.norm_feed_forward2, operands)
    _read_linear(layer.feed_forward2.linear1, operands)
    _read_linear(layer.feed_forward2.linear2, operands, 2.0)
    _read_norm(layer.norm_out, operands)


def _read_norm(norm: nn.LayerNorm, operands: _Operands) -> None:
    _set(norm.weight, operands.take("LayerNormalization"))
    _set(norm.bias, operands.take("LayerNormalization"))


def _read_linear(layer: nn.Linear | nn.Conv1d, operands: _Operands, factor: float = 1.0) -> None:
    """A product with a matrix [in, out], and its bias, both times ``factor``."""
    weight = operands.take("MatMul").t() * factor
    _set(layer.weight, weight[..., None] if isinstance(layer, nn.Conv1d) else weight)
    if layer.bias is not None:
        _set(layer.bias, operands.take("Add") * factor)


def _read_attention(attention: RelativeAttention, operands: _Operands) -> None:
    unscaled = attention.head_size**0.5
    weights = operands.take("MatMul").t().chunk(3)
    linears = (attention.linear_q, attention.linear_k, attention.linear_v)
    factors = (unscaled, 1.0, 1.0)
    for linear, weight, factor in zip(linears, weights, factors, strict=True):
        _set(linear.weight, weight * factor)
    if attention.linear_q.bias is not None:
        for linear, bias, factor in zip(linears, operands.take("Add").chunk(3), factors, strict=True):
            _set(linear.bias, bias * factor)
    for bias in (attention.pos_bias_u, attention.pos_bias_v):
        _set(bias, operands.take("Add").view(attention.heads, -1) * unscaled)
    by_head = operands.take("MatMul")
    if by_head.shape[:2] != (attention.heads, attention.head_size):
        raise ValueError(f"attention has heads of another number or size: {tuple(by_head.shape[:2])}")
    folded = by_head.flatten(0, 1).t()  # [distances, d_model]
    # The distances run from the farthest key that a query sees down to -(MAX_STEP - 1).
    distances = torch.arange(len(folded) - MAX_STEP, -MAX_STEP, -1)
    encodings = sinusoidal_positions(distances, attention.linear_pos.in_features).double()
    # Fewer distances than channels: of the many solutions, the smallest.
    projection = torch.linalg.lstsq(encodings, folded.double(), driver="gelsd").solution
    _check(encodings @ projection.float().double(), folded, "the position table")
    _set(attention.linear_pos.weight, projection.t())


def _read_prediction(network: ParakeetNetwork, operands: _Operands) -> None:
    lstm, embed = network.decoder.lstm, network.decoder.embed
    table = operands.take("Gather").double()  # [vocabulary + 1, 4 * hidden]
    # The blank's embedding is zero, so its row is the biases alone.
    bias = table[network.config.blank]
    embedding, matrix = _factors(table - bias, network.config.prediction_hidden)
    _set(embed.weight, embedding)
    _set(lstm.weight_ih_l0, matrix.t())
    _set(lstm.bias_ih_l0, bias)
    _set(lstm.bias_hh_l0, torch.zeros_like(bias))
    _set(lstm.weight_hh_l0, operands.take("MatMul").t())
    _set(network.joint.pred.weight, operands.take("Gemm"))
    _set(network.joint.pred.bias, operands.take("Gemm"))


def _factors(table: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """float64[m, n] of at most this rank as float64[m, rank] times float64[rank, n]."""
    left, sizes, right = torch.linalg.svd(table, full_matrices=False)
    roots = sizes[:rank].sqrt()
    used = len(roots)
    first, second = table.new_zeros(len(table), rank), table.new_zeros(rank, table.shape[1])
    first[:, :used], second[:used] = left[:, :used] * roots, roots[:, None] * right[:used]
    _check(first.float().double() @ second.float().double(), table, "the table of the prediction network")
    return first, second


def _check(found: Tensor, wanted: Tensor, what: str) -> None:
    error = float((found - wanted).abs().max() / wanted.abs().max())
    if not error <= UNFOLDING_TOLERANCE:
        raise ValueError(f"{what} does not come from the sizes in the manifest (relative error {error:.0e})")


def _set(parameter: Tensor, value: Tensor) -> None:
    if parameter.shape != value.shape:
        raise ValueError(f"a weight of shape {tuple(parameter.shape)} expected, found {tuple(value.shape)}")
    parameter.copy_(value)
