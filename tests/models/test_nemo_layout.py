"""The export in NeMo's layout: the network's arithmetic, and everything sherpa-onnx reads from the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from parakeet_models.export.nemo_layout import (
    ENCODER_INPUTS,
    ENCODER_OUTPUTS,
    TOLERANCE,
    difference,
    export_nemo_layout,
    initial_caches,
    quantize_encoder,
)
from parakeet_models.network import ParakeetNetwork
from support.random_bundle import random_network

VOCABULARY = 40


@pytest.fixture(scope="module")
def network() -> ParakeetNetwork:
    return random_network(VOCABULARY, 1)


@pytest.fixture(scope="module")
def directory(network: ParakeetNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("nemo")
    export_nemo_layout(network, [f"p{i}" for i in range(VOCABULARY)], directory)
    return directory


def test_steady_state_equals_our_streaming_encoder(network: ParakeetNetwork, directory: Path) -> None:
    assert difference(network, directory / "encoder.onnx") < TOLERANCE


def test_names_and_metadata_are_what_sherpa_onnx_reads(directory: Path) -> None:
    model = onnx.load(directory / "encoder.onnx")
    assert [value.name for value in model.graph.input] == list(ENCODER_INPUTS)
    assert [value.name for value in model.graph.output] == list(ENCODER_OUTPUTS)
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert properties["vocab_size"] == str(VOCABULARY)
    assert (properties["window_size"], properties["chunk_shift"]) == ("25", "16")
    assert properties["cache_last_channel_dim2"] == "70"
    lines = (directory / "tokens.txt").read_text("utf-8").splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("p0 0", f"<blk> {VOCABULARY}", VOCABULARY + 1)


def test_position_table_is_projected_at_every_step(network: ParakeetNetwork, directory: Path) -> None:
    """A constant slice would let the runtime fold the projection, which NeMo's own export cannot."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(directory / "optimised.onnx")
    ort.InferenceSession(str(directory / "encoder.onnx"), options, providers=["CPUExecutionProvider"])
    optimised = onnx.load(directory / "optimised.onnx")
    products = sum(node.op_type in ("MatMul", "FusedMatMul", "Gemm") for node in optimised.graph.node)
    # Per layer: q, k, v, positions, output, four of the feed-forwards, three of the attention; and the subsampling's.
    assert products == network.config.layers * 12 + 1


def test_decoder_and_joiner(network: ParakeetNetwork, directory: Path) -> None:
    decoder, joiner = (
        ort.InferenceSession(str(directory / f"{name}.onnx")) for name in ("decoder", "joiner")
    )
    state = np.zeros((1, 1, network.config.prediction_hidden), np.float32)
    names = [value.name for value in decoder.get_inputs()]
    feed = dict(zip(names, [np.array([[3]], np.int32), np.ones(1, np.int32), state, state], strict=True))
    out, length, *states = decoder.run(None, feed)
    expected, expected_states = network.decoder(torch.tensor([[3]]))
    assert length.tolist() == [1]
    assert out[0, :, 0] == pytest.approx(expected[0, 0].detach().numpy(), abs=1e-5)
    for ours, theirs in zip(states, expected_states, strict=True):
        assert ours == pytest.approx(theirs.detach().numpy(), abs=1e-5)
    encoded = torch.randn(1, network.config.d_model, 1)
    logits = joiner.run(None, {"encoder_outputs": encoded.numpy(), "decoder_outputs": out})[0]
    wanted = network.joint(encoded.transpose(1, 2), expected)
    assert logits == pytest.approx(wanted.detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("recipe", ["matmul", "published"])
def test_eight_bit_encoders_run(network: ParakeetNetwork, directory: Path, recipe: str) -> None:
    session = ort.InferenceSession(str(quantize_encoder(directory, recipe)))
    mel = (
        np.random.default_rng(0).standard_normal((2, network.config.mel_bins, 25)).astype(np.float32) * 3 - 8
    )
    inputs = [mel, np.array([25, 25]), *(cache.numpy() for cache in initial_caches(network.config, 2))]
    outputs = session.run(list(ENCODER_OUTPUTS), dict(zip(ENCODER_INPUTS, inputs, strict=True)))
    assert outputs[0].shape == (2, network.config.d_model, 2)
    assert np.isfinite(outputs[0]).all()
