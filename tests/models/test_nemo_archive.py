"""Look-alikes of NeMo archives convert and compute the same; broken, hostile and foreign ones are refused by name."""

from __future__ import annotations

import copy
import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from parakeet_models.export import ConvertError, convert, from_nemo
from parakeet_models.mel import MelParameters, log_mel
from parakeet_models.nemo import NemoError, archive, load_nemo, read_archive
from parakeet_models.network import NetworkConfig, ParakeetNetwork
from parakeet_models.random_weights import train_random_tokenizer
from parakeet_models.random_weights.signal import speech_like
from support import nemo_archive
from support.nemo_archive import CONFIG_NAME, TOKENIZER_NAME, WEIGHTS_NAME, checkpoint, tar, write

MEL = MelParameters(bins=40)
CONFIG = NetworkConfig(
    mel_bins=40,
    d_model=32,
    layers=2,
    heads=4,
    subsampling_channels=8,
    prediction_hidden=24,
    joint_hidden=20,
    vocabulary=66,
)


@dataclass(frozen=True)
class Parts:
    """What a good archive is made of; tests change one part."""

    network: ParakeetNetwork
    config: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizer: bytes

    @property
    def files(self) -> dict[str, bytes]:
        return nemo_archive.members(self.config, self.weights, self.tokenizer)


def make_parts(config: NetworkConfig = CONFIG) -> Parts:
    torch.manual_seed(0)
    network = ParakeetNetwork(config).eval().requires_grad_(False)
    for parameter in network.parameters():
        parameter += torch.randn_like(parameter) * 0.05
    network.decoder.embed.weight[config.blank] = 0.0
    tokenizer = train_random_tokenizer(config.vocabulary)
    return Parts(
        network, nemo_archive.nemo_config(config, MEL), nemo_archive.nemo_weights(network, MEL), tokenizer
    )


@pytest.fixture(scope="module")
def good() -> Parts:
    return make_parts()


@pytest.fixture
def parts(good: Parts) -> Parts:
    """A copy to spoil."""
    weights = {key: value.clone() for key, value in good.weights.items()}
    return Parts(good.network, copy.deepcopy(good.config), weights, good.tokenizer)


@pytest.mark.parametrize(("prefix", "compress"), [("", False), ("./", False), ("./", True)])
def test_same_network(good: Parts, tmp_path: Path, prefix: str, compress: bool) -> None:
    path = write(tmp_path / "model.nemo", tar(good.files, prefix=prefix), compress=compress)
    model = load_nemo(path)
    assert model.network.config == CONFIG
    assert model.mel == MEL
    assert model.tokenizer == good.tokenizer
    expected = good.network.state_dict()
    assert all(torch.equal(value, expected[key]) for key, value in model.network.state_dict().items())


@pytest.mark.parametrize("use_bias", [False, True])
def test_variants(tmp_path: Path, use_bias: bool) -> None:
    """Biases and scaling come from the archive; a joint without dropout has its matrix at index 1."""
    config = NetworkConfig(
        mel_bins=40, d_model=16, layers=1, heads=2, subsampling_channels=4, prediction_hidden=12, joint_hidden=12,
        vocabulary=66, use_bias=use_bias, xscaling=use_bias, conv_kernel=5, attention_left=6, feed_forward_expansion=2,
    )  # fmt: skip
    parts = make_parts(config)
    for key in ("weight", "bias"):
        parts.weights[f"joint.joint_net.1.{key}"] = parts.weights.pop(f"joint.joint_net.2.{key}")
    parts.config["encoder"]["att_context_size"] = [[6, 1]]
    parts.config["encoder"]["conv_context_size"] = [4, 0]
    del parts.config["encoder"]["use_bias"]
    model = load_nemo(write(tmp_path / "model.nemo", tar(parts.files)))
    assert model.network.config == config
    mel = torch.from_numpy(log_mel(speech_like(1.0, 1), MEL))[None]
    length = torch.tensor([mel.shape[1]])
    assert torch.equal(model.network.encoder(mel, length)[0], parts.network.encoder(mel, length)[0])


def test_conversion(good: Parts, tmp_path: Path) -> None:
    path = write(tmp_path / "small.nemo", tar(good.files, prefix="./"), compress=True)
    out = tmp_path / "made" / "bundle"
    steps: list[str] = []
    bundle = convert(from_nemo(path), out, precision="fp32", report=steps.append)
    manifest = bundle.manifest
    assert manifest.name == "small"
    assert manifest.source.startswith("small.nemo, sha256 ")
    assert (manifest.weights, manifest.weights_origin) == ("fp32", "trained")
    assert manifest.parity is not None
    assert manifest.parity.max_difference < 1e-4
    assert manifest.parity.tokens > 0
    assert manifest.parity.token_agreement == 1.0
    assert bundle.path("tokenizer").read_bytes() == good.tokenizer
    assert [path.name for path in out.parent.iterdir()] == ["bundle"]
    assert len(steps) == 2
    with pytest.raises(ConvertError, match="exists; choose another directory"):
        convert(from_nemo(path), out, precision="fp32")


def test_no_pickled_code_runs(good: Parts, tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch {tmp_path}/executed",)

    content = {**good.weights, "encoder.extra": Code()}
    path = write(tmp_path / "model.nemo", tar({**good.files, WEIGHTS_NAME: checkpoint(content)}))
    with pytest.raises(NemoError, match="perhaps code; it was not run"):
        read_archive(path)
    assert not (tmp_path / "executed").exists()


# --- Broken and hostile archives


def link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def without(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {key: value for key, value in files.items() if key != name}


def deflated(files: dict[str, bytes]) -> bytes:
    """The checkpoint with its parts compressed, as torch never does."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data.pkl", bytes(10_000_000))
    return tar({**files, WEIGHTS_NAME: buffer.getvalue()})


def repeated() -> bytes:
    """A tensor of 4 TB that stores four bytes."""
    return checkpoint({"encoder.huge": torch.zeros(1).expand(10**12)})


BROKEN: dict[str, tuple[Callable[[dict[str, bytes]], bytes], str]] = {
    "not an archive": (lambda files: b"not an archive" * 100, "not a tar archive"),
    "empty": (lambda files: b"", "not a tar archive|no model_config.yaml"),
    "cut short": (lambda files: tar(files)[:20_000], "cut short"),
    "no configuration": (lambda files: tar(without(files, CONFIG_NAME)), "no model_config.yaml"),
    "no weights": (lambda files: tar(without(files, WEIGHTS_NAME)), "no model_weights.ckpt"),
    "no tokenizer": (lambda files: tar(without(files, TOKENIZER_NAME)), "no SentencePiece model"),
    "two tokenizers": (
        lambda files: tar({**without(files, TOKENIZER_NAME), "a_tokenizer.model": b"", "b_tokenizer.model": b""}),
        "or several",
    ),
    "member twice": (lambda files: tar({**files, f"./{CONFIG_NAME}": b"a: 1"}), "two members are named"),
    "absolute path": (lambda files: tar({**files, "/etc/cron.d/job": b""}), "points outside"),
    "parent path": (lambda files: tar({**files, "a/../../job": b""}), "points outside"),
    "symbolic link": (lambda files: tar(files, link("a", tarfile.SYMTYPE)), "link, a device"),
    "hard link": (lambda files: tar(files, link(CONFIG_NAME, tarfile.LNKTYPE)), "link, a device"),
    "device": (lambda files: tar(files, link("zero", tarfile.CHRTYPE, "")), "link, a device"),
    "pipe": (lambda files: tar(files, link("pipe", tarfile.FIFOTYPE, "")), "link, a device"),
    "many members": (lambda files: tar({f"{i}": b"" for i in range(300)}), "more than 256 members"),
    "large configuration": (lambda files: tar({**files, CONFIG_NAME: b"#" * (5 << 20)}), "at most 4194304"),
    "not YAML": (lambda files: tar({**files, CONFIG_NAME: b"a: [1"}), "not plain YAML"),
    "YAML that makes objects": (
        lambda files: tar({**files, CONFIG_NAME: b"a: !!python/object/apply:os.system [ls]"}),
        "not plain YAML",
    ),
    "YAML without a mapping": (lambda files: tar({**files, CONFIG_NAME: b"- a"}), "no mapping"),
    "bare pickle": (lambda files: tar({**files, WEIGHTS_NAME: pickle.dumps({"a": 1})}), "not a checkpoint"),
    "deep zip": (deflated, "torch never compresses"),
    "zip of nothing": (
        lambda files: tar({**files, WEIGHTS_NAME: b"PK\x05\x06" + bytes(18)}),
        "no data.pkl",
    ),
    "tensor larger than its storage": (lambda files: tar({**files, WEIGHTS_NAME: repeated()}), "more than it stores"),
    "list of tensors": (lambda files: tar({**files, WEIGHTS_NAME: checkpoint([torch.zeros(1)])}), "no state dict"),
    "training checkpoint": (
        lambda files: tar({**files, WEIGHTS_NAME: checkpoint({"state_dict": {"a": torch.zeros(1)}})}),
        "'state_dict' is no tensor",
    ),
    "tokenizer of another kind": (
        lambda files: tar({**files, TOKENIZER_NAME: b"vocabulary"}),
        "not a SentencePiece model",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_archives(
    good: Parts, tmp_path: Path, make: Callable[[dict[str, bytes]], bytes], message: str
) -> None:
    with pytest.raises(NemoError, match=message):
        load_nemo(write(tmp_path / "model.nemo", make(good.files)))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(NemoError, match="no such file"):
        read_archive(tmp_path / "gone.nemo")
    with pytest.raises(NemoError, match="cannot be read"):
        read_archive(tmp_path)


def test_truncated_gzip(good: Parts, tmp_path: Path) -> None:
    path = write(tmp_path / "model.nemo", tar(good.files), compress=True)
    path.write_bytes(path.read_bytes()[:-2_000])
    with pytest.raises(NemoError, match="cut short"):
        read_archive(path)


def test_gzip_bomb(good: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MIN_EXPANDED_BYTES", 1 << 20)
    path = write(tmp_path / "model.nemo", tar({"zeros": bytes(100 << 20), **good.files}), compress=True)
    with pytest.raises(NemoError, match="expands to more than"):
        read_archive(path)


def test_of_several_tokenizers_the_configuration_names_one(good: Parts, tmp_path: Path) -> None:
    path = write(tmp_path / "model.nemo", tar({"old_tokenizer.model": b"", **good.files}))
    assert read_archive(path).tokenizer == good.tokenizer


# --- Networks that would not compute the same here


def setting(key: str, value: Any) -> Callable[[Parts], None]:
    """Sets (or, with None, removes) one value of the configuration."""

    def change(parts: Parts) -> None:
        *sections, name = key.split(".")
        section = parts.config
        for part in sections:
            section = section[part]
        if value is None:
            del section[name]
        else:
            section[name] = value

    return change


def tensor(key: str, make: Callable[[Tensor | None], Tensor | None]) -> Callable[[Parts], None]:
    """Replaces one tensor; None removes it."""

    def change(parts: Parts) -> None:
        value = make(parts.weights.pop(key, None))
        if value is not None:
            parts.weights[key] = value

    return change


LAYER = "encoder.layers.0"
FOREIGN: list[tuple[Callable[[Parts], None], str]] = [
    (setting("target", "nemo.collections.asr.models.EncDecCTCModelBPE"), "target: found .*EncDecCTCModelBPE"),
    (setting("encoder.n_layers", 17), "encoder.n_layers: found 17, expected 2"),
    (setting("encoder.d_model", 512), "encoder.d_model: found 512, expected 32"),
    (setting("encoder.n_heads", 8), "encoder.n_heads: found 8, expected 4"),
    (setting("encoder.conv_kernel_size", 31), "encoder.conv_kernel_size: found 31, expected 9"),
    (setting("encoder.conv_norm_type", "batch_norm"), "encoder.conv_norm_type: found batch_norm, expected layer"),
    (tensor(f"{LAYER}.conv.batch_norm.running_mean", lambda _: torch.zeros(32)), "running_mean: found a tensor"),
    (setting("encoder.use_bias", True), "encoder.use_bias: found True, expected False"),
    (tensor(f"{LAYER}.self_attn.linear_q.bias", lambda _: torch.zeros(32)), "linear_q.bias: found a tensor"),
    (tensor("encoder.pre_encode.out.weight", lambda w: w[:, : 8 * 5].clone()), "this down-sampling looks ahead"),
    (setting("encoder.causal_downsampling", False), "encoder.causal_downsampling: found False, expected True"),
    (setting("encoder.causal_downsampling", None), "encoder.causal_downsampling: found None"),
    (setting("encoder.subsampling", "striding"), "encoder.subsampling: found striding"),
    (setting("encoder.subsampling_factor", 4), "encoder.subsampling_factor: found 4"),
    (setting("encoder.subsampling_conv_channels", 256), "subsampling_conv_channels: found 256, expected 8"),
    (setting("encoder.xscaling", None), "encoder.xscaling: found None, expected true or false"),
    (setting("encoder.xscaling", "no"), "encoder.xscaling: found no"),
    (setting("encoder.att_context_size", [[70, 13], [70, 1]]), "encoder.att_context_size: found .*one pair"),
    (setting("encoder.att_context_size", [-1, -1]), "encoder.att_context_size: found .-1, -1"),
    (setting("encoder.att_context_size", [70, 6]), "encoder.att_context_size: found .70, 6"),
    (setting("encoder.att_context_style", "regular"), "encoder.att_context_style: found regular"),
    (setting("encoder.conv_context_size", None), "encoder.conv_context_size: found None"),
    (setting("encoder.conv_context_size", [4, 4]), "encoder.conv_context_size: found .4, 4"),
    (setting("encoder.self_attention_model", "abs_pos"), "encoder.self_attention_model: found abs_pos"),
    (setting("encoder.feat_in", 80), "encoder.feat_in: found 80, expected 40, as preprocessor"),
    (setting("encoder.ff_expansion_factor", 2), "encoder.ff_expansion_factor: found 2, expected 4"),
    (setting("joint.num_classes", 1024), "joint.num_classes: found 1024, expected 66"),
    (setting("joint.vocabulary", ["a", "b"]), "joint.vocabulary: found 2 pieces, expected 66"),
    (setting("joint.num_extra_outputs", 5), "joint.num_extra_outputs: found 5"),
    (setting("joint.jointnet.activation", "tanh"), "joint.jointnet.activation: found tanh"),
    (setting("joint.jointnet.joint_hidden", 640), "joint.jointnet.joint_hidden: found 640, expected 20"),
    (setting("decoder.prednet.pred_rnn_layers", 2), "decoder.prednet.pred_rnn_layers: found 2, expected 1"),
    (setting("decoder.prednet.pred_hidden", 640), "decoder.prednet.pred_hidden: found 640, expected 24"),
    (tensor("decoder.prediction.dec_rnn.lstm.weight_ih_l1", lambda _: torch.zeros(96, 24)), "weight_ih_l1: found"),
    (tensor("decoder.prediction.embed.weight", lambda w: w + 0.1), r"embed.weight\[66\]: found .*expected zeros"),
    (tensor("decoder.prediction.embed.weight", lambda w: w[:-1].clone()), "as the embedding has"),
    (setting("preprocessor.normalize", "per_feature"), "preprocessor.normalize: found per_feature, expected NA"),
    (setting("preprocessor.normalize", None), "preprocessor.normalize: found None"),
    (setting("preprocessor.pad_mode", "reflect"), "preprocessor.pad_mode: found reflect, expected constant"),
    (setting("preprocessor.exact_pad", True), "preprocessor.exact_pad: found True, expected False"),
    (setting("preprocessor.window", "hamming"), "preprocessor.window: found hamming"),
    (setting("preprocessor.mag_power", 1.0), "preprocessor.mag_power: found 1.0, expected 2.0"),
    (setting("preprocessor.features", 64), "encoder.feat_in: found 40, expected 64, as"),
    (setting("preprocessor.window_size", "wide"), "preprocessor.window_size: found wide"),
    (setting("preprocessor.window_stride", 0.0), "preprocessor.window_stride: found 0.0"),
    (setting("preprocessor.sample_rate", 8_000), "preprocessor.featurizer.window: found"),
    (tensor("preprocessor.featurizer.window", lambda w: torch.hann_window(400)), "featurizer.window: found"),
    (tensor("preprocessor.featurizer.fb", lambda w: w * 1.01), "featurizer.fb: found"),
    (tensor("encoder.layers.1.norm_out.weight", lambda w: None), "layers.1.norm_out.weight: found no such tensor"),
    (tensor("encoder.layers.3.norm_out.weight", lambda _: torch.zeros(32)), "layers are missing"),
    (tensor("encoder.layers.1.norm_out.weight", lambda w: w[:8].clone()), r"norm_out.weight: found shape \(8,\)"),
    (tensor("encoder.layers.1.norm_out.weight", lambda w: w * torch.nan), "finite numbers"),
    (tensor("ctc_decoder.decoder_layers.0.weight", lambda _: torch.zeros(4)), "ctc_decoder.* found a tensor"),
    (tensor("joint.joint_net.3.weight", lambda _: torch.zeros(4, 4)), "expected one linear layer"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), FOREIGN, ids=[message for _, message in FOREIGN])
def test_foreign_networks(
    parts: Parts, tmp_path: Path, change: Callable[[Parts], None], message: str
) -> None:
    change(parts)
    with pytest.raises(NemoError, match=message):
        load_nemo(write(tmp_path / "model.nemo", tar(parts.files)))


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [(68, "tokenizer.model: found 68 pieces, expected 66")],
)
def test_foreign_tokenizer(parts: Parts, tmp_path: Path, vocabulary: int, message: str) -> None:
    files = {**parts.files, TOKENIZER_NAME: train_random_tokenizer(vocabulary)}
    with pytest.raises(NemoError, match=message):
        load_nemo(write(tmp_path / "model.nemo", tar(files)))
