"""Networks read back from ONNX bundles compute what the bundles compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import sentencepiece

from parakeet_models.bundle import Bundle, embedded_bundle, load_bundle
from parakeet_models.export import Source, TestAudio, UnfoldError, from_bundle, write_bundle
from parakeet_models.export.from_bundle import network_of_bundle
from parakeet_models.export.parity import measure_parity
from parakeet_models.network import NetworkConfig, ParakeetNetwork
from support.coreml import make_network
from support.random_bundle import MEL, make_random_bundle, noise, train_tokenizer

AUDIO = TestAudio("noise", noise(10.0, seed=2))


def bundle_of(network: ParakeetNetwork, tokenizer: Path, out: Path, precision: str) -> Bundle:
    source = Source(
        network,
        MEL,
        tokenizer.read_bytes(),
        name="random",
        description="",
        licence="Apache-2.0",
        origin="random weights",
        weights_origin="random",
    )
    return write_bundle(source, out, precision=precision)


def assert_equal(network: ParakeetNetwork, bundle: Bundle) -> None:
    manifest = bundle.manifest
    parity = measure_parity(
        network, bundle.directory, manifest.mel, manifest.tokens, manifest.step_sizes, AUDIO
    )
    assert parity.max_difference < 1e-4
    assert parity.tokens > 5
    assert parity.token_agreement == 1.0


def test_the_embedded_model() -> None:
    bundle = embedded_bundle()
    network = network_of_bundle(bundle)
    # What trained weights say in noise is not much.
    manifest = bundle.manifest
    audio = TestAudio("noise", noise(2.0, seed=0))
    parity = measure_parity(
        network, bundle.directory, manifest.mel, manifest.tokens, manifest.step_sizes, audio
    )
    assert parity.max_difference < 1e-4
    assert parity.token_agreement == 1.0


def test_a_small_random_bundle(tmp_path: Path) -> None:
    bundle = make_random_bundle(tmp_path)
    assert_equal(network_of_bundle(bundle), bundle)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_biases_scaling_and_another_chunk(tmp_path: Path, precision: str) -> None:
    tokenizer = train_tokenizer(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer)).GetPieceSize()
    config = NetworkConfig(
        mel_bins=MEL.bins,
        d_model=24,
        layers=2,
        heads=2,
        subsampling_channels=6,
        # Smaller than the vocabulary, as at full size: then the rank of the token table is that of the LSTM.
        prediction_hidden=16,
        joint_hidden=20,
        vocabulary=pieces,
        use_bias=True,
        xscaling=True,
    )
    bundle = bundle_of(make_network(config), tokenizer, tmp_path / "bundle", precision)
    assert_equal(network_of_bundle(bundle), bundle)


def test_what_goes_along() -> None:
    bundle = embedded_bundle()
    source = from_bundle(bundle, name="other")
    assert (source.name, source.licence) == ("other", bundle.manifest.licence)
    assert source.tokenizer == bundle.path("tokenizer").read_bytes()
    assert source.model_card == bundle.path("model_card").read_bytes()
    assert (source.origin, source.languages) == (bundle.manifest.source, bundle.manifest.languages)


def test_eight_bit_weights_are_refused(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(tmp_path)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer)).GetPieceSize()
    network = make_network(NetworkConfig(MEL.bins, 24, 1, 2, 6, 16, 20, pieces))
    bundle = bundle_of(network, tokenizer, tmp_path / "bundle", "int8")
    with pytest.raises(UnfoldError, match="int8 weights for onnx; convert its original"):
        network_of_bundle(bundle)


def test_graphs_of_another_exporter_are_refused(tmp_path: Path) -> None:
    bundle = make_random_bundle(tmp_path)
    path = bundle.path("encoder")
    model = onnx.load(path)
    product = next(node for node in model.graph.node if node.op_type == "MatMul")
    product.op_type = "Gemm"
    onnx.save(model, path)
    with pytest.raises(
        UnfoldError, match=r"encoder.onnx: MatMul expected, found Gemm\); convert the original"
    ):
        network_of_bundle(bundle)


def test_sizes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    bundle = make_random_bundle(tmp_path)
    geometry = bundle.manifest.geometry.model_copy(update={"heads": 2})
    manifest = bundle.manifest.model_copy(update={"geometry": geometry})
    with pytest.raises(UnfoldError, match="convert the original"):
        network_of_bundle(replace(bundle, manifest=manifest))
    assert load_bundle(bundle.directory)
