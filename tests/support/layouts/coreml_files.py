"""Look-alikes of the published Core ML exports.

Core ML models cannot be compiled off a Mac. A look-alike of a ``.mlmodelc`` is a folder with the ``metadata.json`` that
the compiler would write, and the package that would be compiled, which the interpreter runs instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from parakeet_models.export.coreml.compress import compress
from parakeet_models.export.coreml.toolkit import ct, quiet
from parakeet_models.network import ParakeetNetwork
from support.layouts.config import STREAMING, write_soniqo_config
from support.layouts.graphs import (
    CountingPrediction,
    DecidingJoint,
    FusedDecoder,
    LogitsJoint,
    LoopbackEncoder,
    Prediction,
    empty_caches,
)
from support.layouts.vocabularies import write_vocab_json
from support.mil.runtime import PACKAGE_INSIDE

VARIANTS = {"160ms": (16, 17, 0), "320ms": (9, 64, 4), "1280ms": (16, 129, 0)}
"""FluidInference: mel frames of ``pre_cache`` and of the window, encoder frames dropped from the caches."""
TYPES = {
    ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT16: "Float16",
    ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT32: "Float32",
    ct.proto.FeatureTypes_pb2.ArrayFeatureType.INT32: "Int32",
}


def make_soniqo(
    network: ParakeetNetwork,
    pieces: Sequence[str],
    directory: Path,
    *,
    mel_frames: int = 64,
    cache_drop: int = 4,
    palettized: bool = True,
) -> Path:
    """``encoder``, ``decoder`` and ``joint`` compiled, ``config.json``, ``vocab.json``; outputs are half precision."""
    directory.mkdir(parents=True)
    encoder = LoopbackEncoder(network, 9, cache_drop=cache_drop, time_major=True)
    model = _convert(
        encoder, _encoder_inputs(network, 9, mel_frames), _encoder_outputs(), half="encoded_output"
    )
    save_compiled(compress(model, "palettized") if palettized else model, directory / "encoder.mlmodelc")
    state = torch.zeros(1, 1, network.config.prediction_hidden)
    token = torch.zeros(1, 1, dtype=torch.int32)
    outputs = ["decoder_output", "h_out", "c_out"]
    decoder = _convert(
        Prediction(network, time_major=True), {"token": token, "h": state, "c": state}, outputs, half="all"
    )
    save_compiled(decoder, directory / "decoder.mlmodelc")
    frames = {"encoder_output": torch.randn(1, 1, network.config.d_model), "decoder_output": state}
    save_compiled(
        _convert(LogitsJoint(network), frames, ["logits"], half="all"), directory / "joint.mlmodelc"
    )
    write_vocab_json(directory, pieces)
    write_soniqo_config(directory, network.config, pieces, STREAMING | {"melFrames": mel_frames})
    return directory


def make_fluidinference(
    network: ParakeetNetwork, pieces: Sequence[str], directory: Path, variant: str = "320ms"
) -> Path:
    """One of the three folders: ``streaming_encoder``, ``decoder``, ``joint_decision``, ``vocab.json``."""
    directory.mkdir(parents=True)
    pre_frames, mel_frames, cache_drop = VARIANTS[variant]
    encoder = LoopbackEncoder(network, pre_frames, cache_drop=cache_drop)
    inputs = _encoder_inputs(network, pre_frames, mel_frames)
    save_compiled(_convert(encoder, inputs, _encoder_outputs()), directory / "streaming_encoder.mlmodelc")
    hidden = network.config.prediction_hidden
    state = torch.zeros(1, 1, hidden)
    inputs = {
        "targets": torch.zeros(1, 1, dtype=torch.int32),
        "target_length": torch.ones(1, dtype=torch.int32),
        "h_in": state,
        "c_in": state,
    }
    model = _convert(CountingPrediction(network, time_major=False), inputs, ["decoder", "h_out", "c_out"])
    save_compiled(model, directory / "decoder.mlmodelc")
    inputs = {
        "encoder_step": torch.randn(1, network.config.d_model, 1),
        "decoder_step": torch.randn(1, hidden, 1),
    }
    outputs = ["token_id", "token_prob", "top_k_ids", "top_k_logits"]
    save_compiled(_convert(DecidingJoint(network), inputs, outputs), directory / "joint_decision.mlmodelc")
    write_vocab_json(directory, pieces)
    return directory


def make_fused_decoder(network: ParakeetNetwork, directory: Path) -> None:
    """FluidInference's ``decoder_joint_decision_fused`` in ``directory``."""
    state = torch.zeros(1, 1, network.config.prediction_hidden)
    inputs = {
        "targets": torch.zeros(1, 1, dtype=torch.int32),
        "h_in": state,
        "c_in": state,
        "encoder_step": torch.randn(1, network.config.d_model, 1),
    }
    outputs = ["token_id", "token_prob", "h_out", "c_out"]
    model = _convert(FusedDecoder(network), inputs, outputs, half="all")
    save_compiled(model, directory / "decoder_joint_decision_fused.mlmodelc")


def save_compiled(model: Any, path: Path) -> None:
    """A folder laid out like a compiled model."""
    path.mkdir(parents=True)
    with quiet():
        model.save(str(path / PACKAGE_INSIDE))
    interface = model.get_spec().description
    content = {
        "metadataOutputVersion": "3.0",
        "specificationVersion": model.get_spec().specificationVersion,
        "modelType": {"name": "MLModelType_mlProgram"},
        "inputSchema": [_schema(feature) for feature in interface.input],
        "outputSchema": [_schema(feature) for feature in interface.output],
        "userDefinedMetadata": dict(interface.metadata.userDefined),
        "method": "predict",
    }
    (path / "metadata.json").write_text(json.dumps([content], indent=2), encoding="utf-8")


def _schema(feature: Any) -> dict[str, str]:
    array = feature.type.multiArrayType
    shape, kind = list(array.shape), TYPES[array.dataType]
    return {
        "name": feature.name,
        "type": "MultiArray",
        "dataType": kind,
        "shape": json.dumps(shape),
        "formattedType": f"MultiArray ({kind} {' × '.join(map(str, shape))})",
        "hasShapeFlexibility": "0",
        "isOptional": "0",
        "shortDescription": "",
    }


def _encoder_inputs(network: ParakeetNetwork, pre_frames: int, mel_frames: int) -> dict[str, Tensor]:
    channel, time = empty_caches(network.config)
    return {
        "audio_signal": torch.randn(1, network.config.mel_bins, mel_frames),
        "audio_length": torch.tensor([mel_frames], dtype=torch.int32),
        "pre_cache": torch.randn(1, network.config.mel_bins, pre_frames),
        "cache_last_channel": channel,
        "cache_last_time": time,
        "cache_last_channel_len": torch.zeros(1, dtype=torch.int32),
    }


def _encoder_outputs() -> list[str]:
    caches = [f"new_cache_last_{name}" for name in ("channel", "time", "channel_len")]
    return ["encoded_output", "encoded_length", "new_pre_cache", *caches]


def _convert(module: nn.Module, inputs: dict[str, Tensor], outputs: list[str], half: str = "") -> Any:
    """For macOS 14, fp16 arithmetic; ``half`` names the output that is fp16, or "all"."""
    with quiet(), torch.no_grad():
        example = tuple(inputs.values())
        traced = torch.jit.trace(module.eval(), example, check_trace=False)
        results = traced(*example)
        results = results if isinstance(results, tuple) else (results,)

        def describe(name: str, tensor: Tensor, real: type) -> Any:
            return ct.TensorType(name, tensor.shape, dtype=real if tensor.is_floating_point() else np.int32)

        return ct.convert(
            traced,
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.macOS14,
            inputs=[describe(name, tensor, np.float32) for name, tensor in inputs.items()],
            outputs=[
                ct.TensorType(
                    name,
                    dtype=(np.float16 if half in (name, "all") else np.float32)
                    if result.is_floating_point()
                    else np.int32,
                )
                for name, result in zip(outputs, results, strict=True)
            ],
            skip_model_load=True,
        )
