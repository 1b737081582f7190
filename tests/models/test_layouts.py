"""Published layouts are recognised from what their graphs take and give, and wrong ones are refused with a reason."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from parakeet_models.bundle import BundleError, embedded_bundle
from parakeet_models.layouts import ForeignBundle, LayoutError, describe, load_model
from parakeet_models.layouts.layout import GraphFile, SeparateDecoder
from parakeet_models.layouts.vocabulary import read_pieces, token_ids, with_ends
from support.layouts.config import STREAMING
from support.layouts.described import PIECES, describe_fluidinference, describe_model, describe_soniqo
from support.layouts.look_alikes import LookAlikes

ADDED = '[{"id": 2, "content": "<EOU>"}]'


def test_soniqo_full_size(tmp_path: Path) -> None:
    layout = describe(describe_soniqo(tmp_path / "Parakeet-EOU-120M-CoreML-INT8"))
    assert (layout.family, layout.runtime, layout.hop, layout.window_frames) == ("soniqo", "coreml", 4, 73)
    ports = layout.encoder.ports
    assert (ports.layers, ports.batch_first, ports.d_model, ports.bins) == (17, False, 512, 128)
    assert isinstance(layout.decoder, SeparateDecoder)
    assert layout.decoder.prediction.ports.count is None
    assert layout.decoder.joint.ports.scores.classes == 1027
    assert (layout.tokens.eou, layout.tokens.eob, layout.tokens.blank) == (1024, 1025, 1026)
    assert layout.mel.bins == 128
    assert set(layout.files) == {"encoder", "prediction", "joint"}


@pytest.mark.parametrize(
    ("folder", "shape", "hop"),
    [("160ms", (16, 17, 3), 1), ("320ms", (9, 64, 8), 4), ("1280ms", (16, 129, 17), 16)],
)
def test_fluidinference_full_size(tmp_path: Path, folder: str, shape: tuple[int, int, int], hop: int) -> None:
    directory = describe_fluidinference(tmp_path / "parakeet-realtime-eou-120m-coreml" / folder, *shape)
    layout = describe(directory)
    assert (layout.family, layout.hop, layout.window_frames) == ("fluidinference", hop, shape[0] + shape[1])
    # Both forms of the decoder are there; the one that the publishers measured is used.
    assert isinstance(layout.decoder, SeparateDecoder)
    assert layout.decoder.joint.ports.scores.token == "token_id"
    bundle = load_model(directory)
    assert isinstance(bundle, ForeignBundle)
    assert bundle.manifest.name == f"parakeet-realtime-eou-120m-coreml/{folder}"
    assert bundle.manifest.step_sizes == (hop,)
    assert (layout.tokens.eou, layout.tokens.eob, layout.tokens.blank) == (1024, 1025, 1026)
    assert len(layout.pieces) == 1026


def test_fused_decoder_alone(tmp_path: Path) -> None:
    directory = describe_fluidinference(tmp_path / "320ms", 9, 64, 8)
    for name in ("decoder", "joint_decision"):
        (directory / f"{name}.mlmodelc").rename(tmp_path / name)
    layout = describe(directory)
    assert isinstance(layout.decoder, GraphFile)
    assert layout.decoder.path.name == "decoder_joint_decision_fused.mlmodelc"
    assert layout.decoder.ports.new_hidden == "h_out"


def test_file_names_do_not_matter(tmp_path: Path) -> None:
    directory = describe_soniqo(tmp_path / "soniqo")
    for old, new in (("encoder", "decoder.x"), ("decoder", "joint.x"), ("joint", "encoder")):
        (directory / f"{old}.mlmodelc").rename(directory / f"{new}.mlmodelc")
    assert [path.name for path in describe(directory).files.values()] == [
        "decoder.x.mlmodelc",
        "joint.x.mlmodelc",
        "encoder.mlmodelc",
    ]


@pytest.mark.parametrize(
    ("streaming", "reason"),
    [
        # The numbers of one published table: they skip audio.
        ({"outputFrames": 20, "preCacheSize": 64}, "advance by 160 mel frames, but a window has only 64"),
        ({"melFrames": 17, "outputFrames": 2, "preCacheSize": 0}, "gives 1 encoder frames, fewer than"),
    ],
)
def test_a_cadence_that_cannot_be_is_refused(tmp_path: Path, streaming: dict[str, int], reason: str) -> None:
    with pytest.raises(LayoutError, match=reason) as refused:
        describe(describe_soniqo(tmp_path / "soniqo", streaming))
    assert "melFrames 64 and outputFrames 4" in str(refused.value)


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), encoding="utf-8")


def test_configuration_of_another_export_is_refused(tmp_path: Path) -> None:
    directory = describe_soniqo(tmp_path / "soniqo")
    config = directory / "config.json"
    published = config.read_text("utf-8")
    for changes, reason in (
        ({"streaming": STREAMING | {"melFrames": 32}}, "melFrames is 32, the encoder takes 64"),
        ({"numMelBins": 80}, "says 80 mel bands, the encoder takes 128"),
        ({"eouTokenId": 1026}, "<EOU> is 1026 and the blank 1026, by vocab.json 1024 and 1026"),
        ({"subsamplingFactor": 4}, "subsamplingFactor 4; this network has 8"),
        ({"sampleRate": "fast"}, "sampleRate: Input should be a valid integer"),
    ):  # fmt: skip
        config.write_text(published, encoding="utf-8")
        edit_json(config, **changes)
        with pytest.raises(LayoutError, match=reason):
            describe(directory)
    config.unlink()
    with pytest.raises(LayoutError, match=r"no config\.json, which states the cadence; download it too"):
        describe(directory)


def test_a_vocabulary_of_another_model_is_refused(tmp_path: Path) -> None:
    directory = describe_soniqo(tmp_path / "soniqo")
    vocabulary = directory / "vocab.json"
    vocabulary.write_text(json.dumps({str(i): piece for i, piece in enumerate(PIECES[:100])}), "utf-8")
    with pytest.raises(LayoutError, match="100 pieces where the joint has 1027 outputs"):
        describe(directory)
    vocabulary.unlink()
    with pytest.raises(LayoutError, match=r"no vocab\.json; without it token ids cannot become text"):
        describe(directory)


def test_a_directory_with_graphs_of_both_kinds(
    look_alikes: LookAlikes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = describe_soniqo(tmp_path / "both")
    for path in look_alikes.directory("altunenes").iterdir():
        shutil.copyfile(path, directory / path.name)
    for platform, family in (("linux", "altunenes"), ("darwin", "soniqo")):
        monkeypatch.setattr(sys, "platform", platform)
        assert describe(directory).family == family
    assert describe(directory, "onnx").runtime == "onnx"
    assert describe(directory, "coreml").runtime == "coreml"


def test_directories_that_hold_no_layout(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no manifest\.json and no \.onnx, \.mlmodelc, \.mlpackage files"):
        load_model(tmp_path)
    with pytest.raises(BundleError, match="no such directory"):
        load_model(tmp_path / "nowhere")
    describe_fluidinference(tmp_path / "320ms", 9, 64, 8)
    describe_fluidinference(tmp_path / "160ms", 16, 17, 3)
    with pytest.raises(BundleError, match="one level down; give one of 160ms, 320ms"):
        load_model(tmp_path)
    other = tmp_path / "other"
    describe_model(other / "whisper.mlmodelc", {"mel": [1, 80, 3000]}, {"out": [1, 1500, 512]})
    with pytest.raises(
        LayoutError, match=r"no published layout of this network: whisper\.mlmodelc \(not recognised\)"
    ):
        describe(other)


def test_files_that_are_damaged(tmp_path: Path) -> None:
    directory = describe_soniqo(tmp_path / "soniqo")
    description = directory / "joint.mlmodelc" / "metadata.json"
    description.write_text("[]", encoding="utf-8")
    with pytest.raises(
        LayoutError, match=r"joint\.mlmodelc.metadata\.json: does not describe a Core ML model"
    ):
        describe(directory)
    description.unlink()
    with pytest.raises(LayoutError, match=r"no metadata\.json, which every compiled Core ML model has"):
        describe(directory)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "encoder.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(LayoutError, match="not an ONNX model that ONNX Runtime can load"):
        describe(broken)


def test_our_own_bundle_is_no_published_layout() -> None:
    bundle = load_model(embedded_bundle().directory)
    assert bundle == embedded_bundle()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vocab.json", '{"0": "<unk>", "1": "▁a", "2": "<EOU>"}'),
        ("vocab.json", '{"<unk>": 0, "▁a": 1, "<EOU>": 2}'),
        ("vocab.json", '["<unk>", "▁a", "<EOU>"]'),
        ("tokens.txt", "<unk> 0\n▁a 1\n<EOU> 2\n<blk> 3\n"),
        ("tokenizer.json", f'{{"model": {{"vocab": {{"<unk>": 0, "▁a": 1}}}}, "added_tokens": {ADDED}}}'),
        ("tokenizer.json", '{"model": {"vocab": [["<unk>", 0.0], ["▁a", -1.5], ["<EOU>", 0]]}}'),
    ],
)  # fmt: skip
def test_vocabularies(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    pieces = read_pieces(tmp_path, (name,))
    assert pieces == ("<unk>", "▁a", "<EOU>")
    tokens = token_ids(pieces, tmp_path)
    assert (tokens.eou, tokens.eob, tokens.blank, tokens.unknown) == (2, None, 3, 0)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("vocab.json", "{", "not a vocabulary"),
        ("vocab.json", "{}", "0 pieces"),
        ("vocab.json", '{"0": "a", "2": "b"}', "2 pieces that are not numbered 0 to 1"),
        ("tokens.txt", "piece\n", "not a vocabulary"),
        ("tokenizer.json", '{"model": {}}', "not a vocabulary"),
    ],
)
def test_damaged_vocabularies(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(LayoutError, match=reason):
        read_pieces(tmp_path, (name,))


def test_ends_that_the_file_leaves_out() -> None:
    assert with_ends(("a", "b"), 5) == ("a", "b", "<EOU>", "<EOB>")
    assert with_ends(("a", "b"), 3) == ("a", "b")
    assert with_ends(("a", "<EOU>"), 5) == ("a", "<EOU>")
    assert len(with_ends(("a",) * 1024, None)) == 1026
    assert len(with_ends(("a",) * 128, None)) == 128


def test_a_model_without_end_of_utterance(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no <EOU>, so this model cannot end an utterance"):
        token_ids(("<unk>", "▁a"), tmp_path)
