"""``parakeet-live models convert`` from the outside, and the random networks it makes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from parakeet_live.cli import app
from parakeet_live.demo import RECORDING
from parakeet_models.bundle import Bundle, embedded_bundle, load_bundle
from parakeet_models.export import ConvertError, from_random_weights
from parakeet_models.random_weights import EmissionRate, train_random_tokenizer

RECORDING_SECONDS = 14


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """A tiny eight-bit bundle, and what the command said."""
    out = tmp_path_factory.mktemp("convert") / "bundle"
    return run("models", "convert", "--random-weights", "tiny", "--precision", "int8", "--out", out), out


@pytest.fixture(scope="module")
def bundle(made: tuple[Result, Path]) -> Bundle:
    result, out = made
    assert result.exit_code == 0, result.output
    return load_bundle(out)


def test_what_it_says(made: tuple[Result, Path], bundle: Bundle) -> None:
    result, out = made
    assert f"random-tiny (int8) is in {out}" in result.stdout
    assert "encoder.onnx" in result.stdout
    assert "Random weights: for benchmarks only" in result.stdout
    assert "drawing and calibrating random weights (tiny): " in result.stderr
    assert "comparing with PyTorch: " in result.stderr


def test_manifest(bundle: Bundle) -> None:
    manifest = bundle.manifest
    assert (manifest.weights, manifest.weights_origin) == ("int8", "random")
    assert manifest.source == "random weights, seed 0"
    assert "its words are noise" in manifest.description
    assert manifest.parity is not None
    assert manifest.parity.audio == "the demo recording"
    assert 0 < manifest.parity.relative_difference < 0.1
    assert manifest.parity.token_agreement > 0.5
    # Four a second, as asked for.
    assert 3 * RECORDING_SECONDS < manifest.parity.tokens < 5 * RECORDING_SECONDS


def test_it_runs_and_the_user_is_warned(bundle: Bundle) -> None:
    result = run("transcribe", RECORDING, "--model", bundle.directory)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.split()) > 5
    assert "warning: this model has random weights" in result.stderr


def test_it_never_writes_over_anything(bundle: Bundle) -> None:
    result = run("models", "convert", "--random-weights", "tiny", "--out", bundle.directory)
    assert result.exit_code == 1
    assert "exists; choose another directory" in result.stderr


def test_one_source(tmp_path: Path) -> None:
    for arguments in ([], ["model.nemo", "--random-weights", "tiny"]):
        result = run("models", "convert", *arguments, "--out", tmp_path / "bundle")
        assert result.exit_code == 1
        assert "give either SOURCE or --random-weights SIZE" in result.stderr


def test_a_bundle_of_an_older_format_is_converted(tmp_path: Path) -> None:
    old = Path(shutil.copytree(embedded_bundle().directory, tmp_path / "old"))
    manifest = json.loads((old / "manifest.json").read_text())
    (old / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    refused = run("transcribe", RECORDING, "--model", old)
    assert refused.exit_code == 1
    assert "parakeet-live models convert SOURCE --precision fp16 --out" in refused.stderr
    result = run("models", "convert", old, "--precision", "fp32", "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    assert load_bundle(tmp_path / "new").manifest.format == 2


def test_a_broken_archive_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "model.nemo").write_bytes(b"not an archive")
    result = run("models", "convert", tmp_path / "model.nemo", "--out", tmp_path / "bundle")
    assert result.exit_code == 1
    assert "not a tar archive" in result.stderr
    assert not (tmp_path / "bundle").exists()


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("parakeet_models.export", "parakeet_models.nemo"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("models", "convert", "--random-weights", "tiny", "--out", tmp_path / "bundle")
    assert result.exit_code == 1
    assert "pip install 'parakeet-live[convert]'" in result.stderr


def test_impossible_requests() -> None:
    with pytest.raises(ConvertError, match="choose from 120m, tiny"):
        from_random_weights("huge", 4.0)
    with pytest.raises(ValueError, match=r"from 0\.1 to 10"):
        EmissionRate(30.0)
    with pytest.raises(ValueError, match="at least 2"):
        EmissionRate(4.0, tokens_per_end=1)


def test_the_tokenizer_is_deterministic() -> None:
    assert train_random_tokenizer(66, seed=3) == train_random_tokenizer(66, seed=3)
