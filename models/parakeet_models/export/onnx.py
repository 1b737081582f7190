"""ONNX graphs of a network: ``encoder``, ``prediction`` and ``joint``, with dynamic batch and dynamic step size.

The encoder graph serves first, middle and last steps of any even size (see :mod:`network.streaming`), so a bundle
holds the weights once whatever the step size, and streams of any age share a batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from parakeet_models.bundle import Precision, encoder_inputs, encoder_outputs
from parakeet_models.export.quantize import quantize_matmuls
from parakeet_models.network import EncoderState, ParakeetNetwork, StreamingEncoder

OPSET = 17
MIN_HALF_ELEMENTS = 1024
"""Smaller constants are not worth a cast node."""


class EncoderGraph(nn.Module):
    """:class:`StreamingEncoder` with its per-layer lists flattened into plain graph inputs and outputs."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.streaming = StreamingEncoder(network)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        layers = self.streaming.config.layers
        fixed, caches = inputs[:7], inputs[7:]
        keys, values, conv = (list(caches[i * layers : (i + 1) * layers]) for i in range(3))
        *new, conv = self.streaming(*fixed, keys, values, conv)
        return (*new, *conv)


class PredictionGraph(nn.Module):
    """One LSTM step per token, with everything that depends on weights only folded into a table.

    ``table[token]`` is the input half of the gates, so the embedding and the input matrix disappear; the output is
    ``joint.pred`` of the new hidden state, the only form the joint needs.
    """

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        lstm = network.decoder.lstm
        with torch.no_grad():
            table = network.decoder.embed.weight @ lstm.weight_ih_l0.t() + lstm.bias_ih_l0 + lstm.bias_hh_l0
            self.register_buffer("table", table)
            self.register_buffer("recurrent", lstm.weight_hh_l0.t().contiguous())
        self.projection = network.joint.pred

    def forward(self, token: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """token int64[B]; h, c float[B, hidden] -> prediction [B, joint_hidden], new h, new c."""
        gates = self.table[token] + h @ self.recurrent
        i, f, g, o = gates.chunk(4, dim=1)  # PyTorch's gate order
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return self.projection(h), h, c


class JointGraph(nn.Module):
    """Best token and its probability for one encoder frame per row."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.joint = network.joint

    def forward(self, encoder: Tensor, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """encoder, prediction float[B, joint_hidden] -> token int64[B] (ties: lowest id), probability [B]."""
        logits = self.joint.combine(encoder, prediction)
        token = logits.argmax(-1)
        probability = torch.softmax(logits, -1).gather(1, token[:, None])[:, 0]
        return token, probability


def export_graphs(network: ParakeetNetwork, directory: Path, *, precision: Precision) -> None:
    """Write ``encoder.onnx``, ``prediction.onnx`` and ``joint.onnx`` into ``directory``.

    ``fp16``: the network's weights are rounded and stored so; the runtime's arithmetic stays fp32. ``int8``: the
    encoder's matrix products run on eight-bit integers.
    """
    network = network.eval()
    if precision == "fp16":
        for parameter in network.parameters():
            # A multiple of twice the smallest fp16 number, so that the halves folded for streaming are exact too.
            parameter.data = (parameter.data.half().float() * 2.0**23).round() / 2.0**23
    config = network.config
    batch, frames = 2, 4
    state = EncoderState.initial(config, batch)
    encoder_example = (
        torch.randn(batch, 8 * frames + 1, config.mel_bins),
        torch.zeros(batch, dtype=torch.int64),
        torch.full((batch,), 8 * frames + 1),
        state.position,
        state.valid,
        state.stage1,
        state.stage2,
        *state.keys,
        *state.values,
        *state.conv,
    )
    hidden, joint = config.prediction_hidden, config.joint_hidden
    inputs, outputs = encoder_inputs(config.layers), encoder_outputs(config.layers)
    dynamic = {name: {0: "batch"} for name in (*inputs, *outputs)}
    dynamic["mel"][1] = "mel_frames"
    dynamic["encoded"][1] = dynamic["new_rows"][3] = "frames"
    row = {0: "batch"}

    def write(name: str, module: nn.Module, example: tuple[Tensor, ...], **names: object) -> None:
        path = directory / f"{name}.onnx"
        _trace(module, example, path, **names)
        model = onnx.load(path)
        if precision == "fp16":
            store_as_half(model)
        if precision == "int8" and name == "encoder":
            # The decoder is 3 % of a step, feeds its state back, and its probabilities are shown: it stays fp32.
            quantize_matmuls(model)
        onnx.checker.check_model(model)
        onnx.save(model, path)

    write(
        "encoder",
        EncoderGraph(network),
        encoder_example,
        input_names=inputs,
        output_names=outputs,
        dynamic_axes=dynamic,
    )
    write(
        "prediction",
        PredictionGraph(network),
        (torch.tensor([0, 1]), torch.zeros(batch, hidden), torch.zeros(batch, hidden)),
        input_names=["token", "h", "c"],
        output_names=["prediction", "new_h", "new_c"],
        dynamic_axes=dict.fromkeys(("token", "h", "c", "prediction", "new_h", "new_c"), row),
    )
    write(
        "joint",
        JointGraph(network),
        (torch.randn(batch, joint), torch.randn(batch, joint)),
        input_names=["encoder", "prediction"],
        output_names=["token", "probability"],
        dynamic_axes=dict.fromkeys(("encoder", "prediction", "token", "probability"), row),
    )


def _trace(module: nn.Module, example: tuple[Tensor, ...], path: Path, **names: object) -> None:
    export: Callable[..., None] = torch.onnx.export
    with warnings.catch_warnings():
        # The tracer warns about every Python int it sees in a shape; the parity check is what tells whether
        # one of them was wrongly frozen.
        warnings.simplefilter("ignore")
        export(module.eval(), example, path, opset_version=OPSET, dynamo=False, **names)


def store_as_half(model: onnx.ModelProto) -> None:
    """Store every large fp32 constant that fp16 holds exactly as fp16, followed by a cast that is folded at load."""
    casts = []
    for tensor in list(model.graph.initializer):
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(tensor)
        half = values.astype(np.float16)
        if values.size < MIN_HALF_ELEMENTS or not np.array_equal(half.astype(np.float32), values):
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
        casts.append(onnx.helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT))
    for cast in reversed(casts):
        model.graph.node.insert(0, cast)
