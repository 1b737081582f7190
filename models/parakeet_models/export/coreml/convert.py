"""From PyTorch to Core ML programs, one part and one fixed shape at a time."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from parakeet_models.bundle import Precision
from parakeet_models.coreml import CACHES, cache_shapes
from parakeet_models.export.coreml.compress import compress
from parakeet_models.export.coreml.encoder import ChannelsFirstEncoder, StatefulEncoder
from parakeet_models.export.coreml.toolkit import ct, quiet
from parakeet_models.export.onnx import PredictionGraph
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.network import ParakeetNetwork
from parakeet_models.packages import State

TARGETS = {"macOS14": ct.target.macOS14, "macOS15": ct.target.macOS15}
Target = Literal["macOS14", "macOS15"]
"""Oldest system that runs the package; iOS 17 and iOS 18 are the same formats."""
COUNTERS = ("begin", "end", "valid")
"""Whole numbers, passed as floating-point [1, 1, 1, 1]: the Neural Engine has no integers."""


class JointStep(nn.Module):
    """Best token and its probability for one encoder frame."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.joint = network.joint

    def forward(self, encoder: Tensor, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """encoder, prediction float[1, joint_hidden] -> token int32[1], probability float[1]."""
        logits = self.joint.combine(encoder, prediction)
        # The best token's probability is the largest one, which spares a gather.
        return logits.argmax(-1).int(), torch.softmax(logits, -1).amax(-1)


def convert_encoder(
    network: ParakeetNetwork, step: int, precision: Precision, state: State, target: Target
) -> Any:
    """An ``MLModel`` of the encoder for steps of ``step`` frames; weights are in place, nothing is loaded.

    Raises:
        ValueError: for a step that the network cannot take, for MLState before macOS 15, and for MLState with fp32,
            which Core ML does not have.
    """
    if state == "mlstate" and target == "macOS14":
        raise ValueError("MLState needs macOS 15: choose that target, or explicit state")
    if state == "mlstate" and precision == "fp32":
        raise ValueError(
            "Core ML states hold fp16 only: choose explicit state for fp32, or another precision"
        )
    encoder = ChannelsFirstEncoder(network, step)
    shapes = cache_shapes(network.config)
    mel = torch.zeros(1, 1, SUBSAMPLING_FACTOR * step + 1, network.config.mel_bins)
    inputs = {"mel": mel, **{name: torch.zeros(1, 1, 1, 1) for name in COUNTERS}}
    if state == "mlstate":
        return _convert(StatefulEncoder(encoder), inputs, ["encoded"], precision, target, shapes)
    inputs |= {name: torch.zeros(shape) for name, shape in shapes.items()}
    return _convert(encoder, inputs, ["encoded", *(f"new_{name}" for name in CACHES)], precision, target)


def convert_prediction(network: ParakeetNetwork, precision: Precision) -> Any:
    """An ``MLModel`` of one step of the prediction network, which ends in the joint's projection."""
    hidden = network.config.prediction_hidden
    inputs = {
        "token": torch.zeros(1, dtype=torch.int32),
        "h": torch.zeros(1, hidden),
        "c": torch.zeros(1, hidden),
    }
    return _convert(PredictionGraph(network), inputs, ["prediction", "new_h", "new_c"], precision)


def convert_joint(network: ParakeetNetwork, precision: Precision) -> Any:
    """An ``MLModel`` of the joint: best token and probability of one frame."""
    inputs = {name: torch.zeros(1, network.config.joint_hidden) for name in ("encoder", "prediction")}
    return _convert(JointStep(network), inputs, ["token", "probability"], precision)


def _convert(
    module: nn.Module,
    inputs: dict[str, Tensor],
    outputs: list[str],
    precision: Precision,
    target: Target = "macOS14",
    states: dict[str, tuple[int, ...]] | None = None,
) -> Any:
    real = np.float32 if precision == "fp32" else np.float16

    def describe(name: str, tensor: Tensor) -> Any:
        return ct.TensorType(name, tensor.shape, dtype=real if tensor.is_floating_point() else np.int32)

    with quiet(), torch.no_grad():
        example = tuple(inputs.values())
        traced = torch.jit.trace(module.eval(), example, check_trace=False)
        results = traced(*example)
        results = results if isinstance(results, tuple) else (results,)
        model = ct.convert(
            traced,
            convert_to="mlprogram",
            minimum_deployment_target=TARGETS[target],
            compute_precision=ct.precision.FLOAT32 if precision == "fp32" else ct.precision.FLOAT16,
            inputs=[describe(name, tensor) for name, tensor in inputs.items()],
            outputs=[
                ct.TensorType(name, dtype=real if result.is_floating_point() else np.int32)
                for name, result in zip(outputs, results, strict=True)
            ],
            states=[
                ct.StateType(ct.TensorType(shape=shape, dtype=np.float16), name=name)
                for name, shape in (states or {}).items()
            ],
            skip_model_load=True,
        )
    return compress(model, precision)
