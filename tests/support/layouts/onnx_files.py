"""Look-alikes of the published ONNX exports: the same names, shapes, types and free axes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from parakeet_models.export.nemo_layout import PRE_ENCODE_CACHE, export_nemo_layout
from parakeet_models.export.onnx import OPSET
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.network import ParakeetNetwork
from support.layouts.config import STREAMING, write_soniqo_config
from support.layouts.graphs import (
    DecoderJoint,
    LayersFirstEncoder,
    LogitsJoint,
    LoopbackEncoder,
    Prediction,
    empty_caches,
)
from support.layouts.vocabularies import write_tokenizer_json, write_vocab_json

FREE = {0: "batch"}


def make_altunenes(network: ParakeetNetwork, pieces: Sequence[str], directory: Path) -> Path:
    """``encoder.onnx``, ``decoder_joint.onnx``, ``tokenizer.json``; the first axis of the caches is said to be free,
    although it is that of the layers.
    """
    directory.mkdir(parents=True)
    config = network.config
    window = PRE_ENCODE_CACHE + 2 * SUBSAMPLING_FACTOR
    inputs = {
        "audio_signal": torch.randn(1, config.mel_bins, window),
        "length": torch.tensor([window]),
        "cache_last_channel": empty_caches(config)[0],
        "cache_last_time": empty_caches(config)[1],
        "cache_last_channel_len": torch.tensor([0]),
    }
    caches = ("cache_last_channel", "cache_last_time", "cache_last_channel_len")
    outputs = ["outputs", "encoded_lengths", *(f"new_{name}" for name in caches)]
    free = {
        **dict.fromkeys((*inputs, *outputs), FREE),
        "audio_signal": {0: "batch", 2: "time"},
        "outputs": {0: "batch", 2: "time"},
    }
    _export(LayersFirstEncoder(network), inputs, outputs, directory / "encoder.onnx", free)
    state = torch.zeros(1, 1, config.prediction_hidden)
    decoder = {
        "encoder_outputs": torch.randn(1, config.d_model, 1),
        "targets": torch.zeros(1, 1, dtype=torch.int32),
        "target_length": torch.ones(1, dtype=torch.int32),
        "input_states_1": state,
        "input_states_2": state,
    }
    outputs = ["outputs", "prednet_lengths", "output_states_1", "output_states_2"]
    _export(DecoderJoint(network), decoder, outputs, directory / "decoder_joint.onnx")
    write_tokenizer_json(directory, pieces)
    return directory


def make_sherpa(network: ParakeetNetwork, pieces: Sequence[str], directory: Path) -> Path:
    """``encoder.onnx``, ``decoder.onnx``, ``joiner.onnx``, ``tokens.txt``: what our exporter for sherpa-onnx writes."""
    export_nemo_layout(network, list(pieces), directory)
    return directory


def make_soniqo_onnx(network: ParakeetNetwork, pieces: Sequence[str], directory: Path) -> Path:
    """The ONNX sibling of soniqo's Core ML export: the same names, encoder frames time first, tokens int64."""
    directory.mkdir(parents=True)
    config = network.config
    make_loopback_encoder(network, pieces, directory, STREAMING, cache_drop=4)
    state = torch.zeros(1, 1, config.prediction_hidden)
    _export(
        Prediction(network, time_major=True),
        {"token": torch.zeros(1, 1, dtype=torch.int64), "h": state, "c": state},
        ["decoder_output", "h_out", "c_out"],
        directory / "parakeet-eou-decoder.onnx",
    )
    _export(
        LogitsJoint(network),
        {"encoder_output": torch.randn(1, 1, config.d_model), "decoder_output": state},
        ["logits"],
        directory / "parakeet-eou-joint.onnx",
    )
    write_vocab_json(directory, pieces)
    return directory


def make_loopback_encoder(
    network: ParakeetNetwork,
    pieces: Sequence[str],
    directory: Path,
    streaming: Mapping[str, int],
    cache_drop: int,
) -> None:
    """The encoder of :func:`make_soniqo_onnx` in some cadence, and the ``config.json`` that states it."""
    config = network.config
    channel, time = empty_caches(config)
    pre_frames, mel_frames = streaming["preCacheSize"], streaming["melFrames"]
    inputs = {
        "audio_signal": torch.randn(1, config.mel_bins, mel_frames),
        "audio_length": torch.tensor([mel_frames], dtype=torch.int32),
        "pre_cache": torch.randn(1, config.mel_bins, pre_frames),
        "cache_last_channel": channel,
        "cache_last_time": time,
        "cache_last_channel_len": torch.zeros(1, dtype=torch.int32),
    }
    outputs = ["encoded_output", "encoded_length", "new_pre_cache"]
    outputs += [f"new_cache_last_{name}" for name in ("channel", "time", "channel_len")]
    encoder = LoopbackEncoder(network, pre_frames, cache_drop=cache_drop, time_major=True)
    _export(encoder, inputs, outputs, directory / "parakeet-eou-encoder.onnx")
    write_soniqo_config(directory, config, pieces, streaming)


def _export(
    module: nn.Module,
    inputs: dict[str, Tensor],
    outputs: list[str],
    path: Path,
    free: dict[str, dict[int, str]] | None = None,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sizes that the tracer sees; they are meant to be fixed
        torch.onnx.export(
            module.eval(),
            tuple(inputs.values()),
            path,
            input_names=list(inputs),
            output_names=outputs,
            dynamic_axes=free or {},
            opset_version=OPSET,
            dynamo=False,
        )
