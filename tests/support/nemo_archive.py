"""Look-alikes of NeMo's ``.nemo`` archives, made of a small network of our own."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from parakeet_models.mel import MelParameters, hann_window, mel_filterbank
from parakeet_models.network import NetworkConfig, ParakeetNetwork

CONFIG_NAME = "model_config.yaml"
WEIGHTS_NAME = "model_weights.ckpt"
TOKENIZER_NAME = "0f6b1c2d_tokenizer.model"


def nemo_config(config: NetworkConfig, mel: MelParameters) -> dict[str, Any]:
    """``model_config.yaml`` with the sections and names that NeMo writes."""
    return {
        "sample_rate": mel.sample_rate,
        "preprocessor": {
            "_target_": "nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor",
            "sample_rate": mel.sample_rate,
            "normalize": "NA",
            "window_size": mel.window_length / mel.sample_rate,
            "window_stride": mel.hop_length / mel.sample_rate,
            "window": "hann",
            "features": mel.bins,
            "n_fft": mel.fft_length,
            "log": True,
            "frame_splicing": 1,
            "dither": 1e-05,
            "pad_to": 0,
            "pad_value": 0.0,
        },
        "encoder": {
            "_target_": "nemo.collections.asr.modules.ConformerEncoder",
            "feat_in": mel.bins,
            "feat_out": -1,
            "n_layers": config.layers,
            "d_model": config.d_model,
            "use_bias": config.use_bias,
            "subsampling": "dw_striding",
            "subsampling_factor": 8,
            "subsampling_conv_channels": config.subsampling_channels,
            "causal_downsampling": True,
            "ff_expansion_factor": config.feed_forward_expansion,
            "self_attention_model": "rel_pos",
            "n_heads": config.heads,
            "att_context_size": [config.attention_left, config.attention_right],
            "att_context_style": "chunked_limited",
            "xscaling": config.xscaling,
            "untie_biases": True,
            "pos_emb_max_len": 5000,
            "conv_kernel_size": config.conv_kernel,
            "conv_norm_type": "layer_norm",
            "conv_context_size": "causal",
        },
        "decoder": {
            "_target_": "nemo.collections.asr.modules.RNNTDecoder",
            "normalization_mode": None,
            "blank_as_pad": True,
            "vocab_size": config.vocabulary,
            "prednet": {"pred_hidden": config.prediction_hidden, "pred_rnn_layers": 1, "dropout": 0.2},
        },
        "joint": {
            "_target_": "nemo.collections.asr.modules.RNNTJoint",
            "log_softmax": None,
            "num_classes": config.vocabulary,
            "vocabulary": [str(piece) for piece in range(config.vocabulary)],
            "jointnet": {
                "joint_hidden": config.joint_hidden,
                "activation": "relu",
                "dropout": 0.2,
                "encoder_hidden": config.d_model,
                "pred_hidden": config.prediction_hidden,
            },
        },
        "tokenizer": {"type": "bpe", "dir": "???", "model_path": f"nemo:{TOKENIZER_NAME}"},
        "decoding": {"strategy": "greedy_batch", "greedy": {"max_symbols": 10}},
        "target": "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel",
        "nemo_version": "2.5.3",
    }


def nemo_weights(network: ParakeetNetwork, mel: MelParameters) -> dict[str, Tensor]:
    """NeMo's state dict: ours, and the tables of its preprocessor."""
    return {
        "preprocessor.featurizer.window": torch.from_numpy(hann_window(mel.window_length)),
        "preprocessor.featurizer.fb": torch.from_numpy(mel_filterbank(mel).T[None].copy()),
        **{key: value.clone() for key, value in network.state_dict().items()},
    }


def checkpoint(content: object) -> bytes:
    """What ``torch.save`` writes."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def members(config: dict[str, Any], weights: dict[str, Tensor], tokenizer: bytes) -> dict[str, bytes]:
    """The files of an archive, by name."""
    return {
        CONFIG_NAME: yaml.safe_dump(config).encode(),
        TOKENIZER_NAME: tokenizer,
        TOKENIZER_NAME.replace(".model", ".vocab"): b"<unk>\t0\n",
        WEIGHTS_NAME: checkpoint(weights),
    }


def tar(files: dict[str, bytes], *special: tarfile.TarInfo, prefix: str = "") -> bytes:
    """A plain tar of the files, after the ``special`` members, which have no content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info in special:
            archive.addfile(info)
        if prefix == "./":
            root = tarfile.TarInfo("./")
            root.type = tarfile.DIRTYPE
            archive.addfile(root)
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def write(path: Path, data: bytes, *, compress: bool = False) -> Path:
    """The archive on disk."""
    path.write_bytes(gzip.compress(data, 1) if compress else data)
    return path
