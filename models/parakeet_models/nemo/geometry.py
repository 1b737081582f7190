"""The sizes of a network, from its tensors, checked against its configuration (model contract §1.7)."""

from __future__ import annotations

import re
from typing import Any

from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.nemo.checks import INCONSISTENT, RETRAIN, Settings, Weights, refuse
from parakeet_models.network import NetworkConfig
from parakeet_models.network.streaming import MAX_STEP

LAYER_KEY = re.compile(r"encoder\.layers\.(\d+)\.")
JOINT_OUTPUT_KEY = re.compile(r"joint\.joint_net\.\d+\.weight")
CLASS_NAME = "EncDecRNNTBPEModel"
LAYER = "encoder.layers.0"


def check_class(settings: Settings) -> None:
    """Only a pure RNN-T model with a SentencePiece tokenizer has the parts this runtime needs."""
    target = settings.get("target")
    if target is not None and str(target).rpartition(".")[2] != CLASS_NAME:
        refuse(
            "target", target, CLASS_NAME, "only streaming RNN-T models with a SentencePiece tokenizer convert"
        )


def network_config(settings: Settings, weights: Weights, mel_bins: int) -> NetworkConfig:
    """Sizes and switches of the network that takes ``mel_bins`` mel bands.

    Raises:
        NemoError: tensors and configuration disagree, or describe another architecture.
    """
    layers = _layer_count(settings, weights)
    (d_model,) = weights.shape(f"{LAYER}.norm_out.weight", 1)
    settings.agree("encoder.d_model", d_model)
    heads, head_size = weights.shape(f"{LAYER}.self_attn.pos_bias_u", 2)
    settings.agree("encoder.n_heads", heads)
    if heads * head_size != d_model:
        refuse(f"{LAYER}.self_attn.pos_bias_u", [heads, head_size], f"a product of {d_model}", INCONSISTENT)
    kernel = weights.shape(f"{LAYER}.conv.depthwise_conv.weight", 3)[2]
    settings.agree("encoder.conv_kernel_size", kernel)
    inner = weights.shape(f"{LAYER}.feed_forward1.linear1.weight", 2)[0]
    if inner % d_model:
        refuse(f"{LAYER}.feed_forward1.linear1.weight", f"{inner} rows", f"a multiple of {d_model}", RETRAIN)
    settings.agree("encoder.ff_expansion_factor", inner // d_model)
    left, right = _attention_context(settings)
    _check_convolution(settings, weights, kernel)
    settings.supports("encoder.self_attention_model", "rel_pos")
    settings.supports("encoder.untie_biases", True)
    channels = _subsampling(settings, weights, mel_bins)
    prediction_hidden, joint_hidden, vocabulary = _decoder(settings, weights, d_model)
    xscaling = settings.flag("encoder.xscaling")
    if xscaling is None:
        refuse(
            "encoder.xscaling",
            None,
            "true or false",
            "tensors do not tell: add the value the model was trained with",
        )
    return NetworkConfig(
        mel_bins=mel_bins,
        d_model=d_model,
        layers=layers,
        heads=heads,
        subsampling_channels=channels,
        prediction_hidden=prediction_hidden,
        joint_hidden=joint_hidden,
        vocabulary=vocabulary,
        use_bias=_use_bias(settings, weights),
        xscaling=xscaling,
        feed_forward_expansion=inner // d_model,
        conv_kernel=kernel,
        attention_left=left,
        attention_right=right,
    )


def joint_output_key(weights: Weights) -> str:
    """Key of the joint's last matrix: its index depends on whether the joint was trained with dropout."""
    keys = [key for key in weights.tensors if JOINT_OUTPUT_KEY.fullmatch(key)]
    if len(keys) != 1:
        refuse("joint.joint_net", sorted(keys), "one linear layer", RETRAIN)
    return keys[0]


def _layer_count(settings: Settings, weights: Weights) -> int:
    indices = {int(match[1]) for key in weights.tensors if (match := LAYER_KEY.match(key))}
    if not indices:
        refuse("encoder.layers", "no tensors", "a FastConformer encoder", RETRAIN)
    if indices != set(range(len(indices))):
        refuse(
            "encoder.layers",
            sorted(indices),
            f"0 to {max(indices)}",
            "layers are missing; save the model again",
        )
    settings.agree("encoder.n_layers", len(indices))
    return len(indices)


def _attention_context(settings: Settings) -> tuple[int, int]:
    """(left, right) in encoder frames of the one context the model was trained with."""
    settings.supports("encoder.att_context_style", "chunked_limited", required=True)
    value: Any = settings.need("encoder.att_context_size")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if not (isinstance(value, list) and len(value) == 2 and all(type(v) is int for v in value)):
        refuse("encoder.att_context_size", value, "one pair like [70, 1]", RETRAIN)
    left, right = value
    if left < 1 or right < 0 or left % (right + 1):
        refuse(
            "encoder.att_context_size", value, "a left context of whole chunks of right + 1 frames", RETRAIN
        )
    if MAX_STEP % (right + 1):
        refuse("encoder.att_context_size", value, f"right + 1 to divide {MAX_STEP}", RETRAIN)
    return left, right


def _check_convolution(settings: Settings, weights: Weights, kernel: int) -> None:
    weights.absent(f"{LAYER}.conv.batch_norm.running_mean", "LayerNorm has no running statistics")
    settings.supports("encoder.conv_norm_type", "layer_norm", required=True)
    context = settings.need("encoder.conv_context_size")
    if context not in ("causal", [kernel - 1, 0]):
        refuse("encoder.conv_context_size", context, f"'causal' or [{kernel - 1}, 0]", RETRAIN)


def _use_bias(settings: Settings, weights: Weights) -> bool:
    """From the keys; a key of one linear layer stands for all, the comparison of names finds exceptions."""
    use_bias = f"{LAYER}.feed_forward1.linear1.bias" in weights.tensors
    settings.agree("encoder.use_bias", use_bias)
    return use_bias


def _subsampling(settings: Settings, weights: Weights, mel_bins: int) -> int:
    """Channels. Only causal down-sampling leaves ``n // 2 + 1`` of n bands at each of its three stages."""
    settings.supports("encoder.subsampling", "dw_striding")
    settings.supports("encoder.subsampling_factor", SUBSAMPLING_FACTOR)
    channels = weights.shape("encoder.pre_encode.conv.0.weight", 4)[0]
    settings.agree("encoder.subsampling_conv_channels", channels)
    columns = weights.shape("encoder.pre_encode.out.weight", 2)[1]
    width = mel_bins
    for _ in range(3):
        width = width // 2 + 1
    if columns != width * channels:
        looks_ahead = columns == -(-mel_bins // SUBSAMPLING_FACTOR) * channels
        refuse(
            "encoder.pre_encode.out.weight",
            f"{columns} columns",
            f"{width * channels}: {channels} channels of the {width} bands that causal down-sampling leaves",
            f"{'this down-sampling looks ahead and cannot be streamed; ' if looks_ahead else ''}{RETRAIN}",
        )
    settings.supports("encoder.causal_downsampling", True, required=True)
    return channels


def _decoder(settings: Settings, weights: Weights, d_model: int) -> tuple[int, int, int]:
    """(prediction hidden, joint hidden, vocabulary)."""
    weights.absent("decoder.prediction.dec_rnn.lstm.weight_ih_l1", "one LSTM layer")
    settings.supports("decoder.prednet.pred_rnn_layers", 1)
    settings.supports("decoder.blank_as_pad", True)
    settings.supports("joint.jointnet.activation", "relu")
    settings.supports("joint.num_extra_outputs", 0)
    entries, prediction_hidden = weights.shape("decoder.prediction.embed.weight", 2)
    settings.agree("decoder.prednet.pred_hidden", prediction_hidden)
    settings.agree("joint.jointnet.pred_hidden", prediction_hidden)
    settings.agree("joint.jointnet.encoder_hidden", d_model)
    output = joint_output_key(weights)
    rows, joint_hidden = weights.shape(output, 2)
    settings.agree("joint.jointnet.joint_hidden", joint_hidden)
    if rows != entries:
        refuse(output, f"{rows} rows", f"{entries}, as the embedding has", RETRAIN)
    settings.agree("joint.num_classes", rows - 1)
    settings.agree("decoder.vocab_size", rows - 1)
    pieces = settings.get("joint.vocabulary")
    if pieces is not None and len(pieces) != rows - 1:
        refuse(
            "joint.vocabulary", f"{len(pieces)} pieces", f"{rows - 1}", f"the weights say so: {INCONSISTENT}"
        )
    return prediction_hidden, joint_hidden, rows - 1
