"""Every way a bundle can be broken has an error that names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import Bundle, BundleError, load_bundle
from parakeet_models.export import Source
from support.random_bundle import MEL, make_random_bundle, random_network, train_tokenizer


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_random_bundle(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def copy(good: Bundle, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good.directory, tmp_path / "copy"))


def test_round_trip(copy: Path, good: Bundle) -> None:
    bundle = load_bundle(copy)
    assert bundle.manifest == good.manifest
    assert bundle.path("encoder").is_file()
    assert bundle.manifest.step_sizes == (2, 4, 8, 16)
    with pytest.raises(BundleError, match="model_card"):
        bundle.path("model_card")


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("geometry"), "geometry"),
        (lambda m: m.update(format=3), "format"),
        (lambda m: m.update(format=1), "convert .*copy or the checkpoint again: .* --precision fp16 --out"),
        (lambda m: m.update(format=1, weights="int8"), "convert the checkpoint again: .* --precision int8"),
        (lambda m: m.update(colour="red"), "colour"),
        (lambda m: m["mel"].update(bins=80), "mel.bins 80"),
        (lambda m: m["tokens"].update(blank=3), "tokens.blank 3"),
        (lambda m: m["tokens"].update(eou=9_999), "outside the vocabulary"),
        (lambda m: m.update(step_sizes=[3]), "step size 3 breaks the attention chunks"),
        (lambda m: m.update(step_sizes=[]), "step_sizes"),
        (lambda m: m.update(step_sizes=[4, 2]), "ascending"),
        (lambda m: m["geometry"].update(heads=5), "not a multiple of heads"),
        (lambda m: m["geometry"].update(attention_left=71), "attention_left"),
        (lambda m: m["files"].pop(0), "'encoder'"),
        (lambda m: m["files"].append(m["files"][0]), "'encoder'"),
        (lambda m: m["files"][0].update(sha256="xyz"), "sha256"),
        (lambda m: m["files"][0].update(path="../escape.onnx"), "outside the bundle"),
        (lambda m: m["files"][0].update(path="gone.onnx"), "gone.onnx is missing"),
        (lambda m: m["files"][0].update(bytes=1), "incomplete"),
        (lambda m: m["files"][0].update(sha256="0" * 64), "damaged"),
        (lambda m: m.update(languages=[]), "languages"),
    ],
)
def test_broken_manifest(copy: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    edit(copy, change)
    with pytest.raises(BundleError, match=message):
        load_bundle(copy)


def test_not_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such directory"):
        load_bundle(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="not a bundle directory"):
        load_bundle(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(BundleError, match="not a valid manifest"):
        load_bundle(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BundleError, match="cannot be read"):
        load_bundle(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(good: Bundle, tmp_path: Path) -> None:
    geometry = good.manifest.geometry.model_copy(update={"vocabulary": good.manifest.geometry.vocabulary + 1})
    wrong = Bundle(good.directory, good.manifest.model_copy(update={"geometry": geometry}))
    with pytest.raises(BundleError, match="belongs to another model"):
        Vocabulary.load(wrong)
    directory = tmp_path / "garbage"
    shutil.copytree(good.directory, directory)
    (directory / "tokenizer.model").write_bytes(b"not a model")
    with pytest.raises(BundleError, match="not a SentencePiece model"):
        Vocabulary.load(Bundle(directory, good.manifest))


def test_export_refuses_a_tokenizer_that_does_not_fit(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(tmp_path).read_bytes()
    source = Source(random_network(5, 1, 0), MEL, tokenizer, "x", "", "Apache-2.0", "random weights")
    with pytest.raises(ValueError, match="the network has 5"):
        source.token_ids()
