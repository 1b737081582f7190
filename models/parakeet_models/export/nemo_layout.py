"""The network in the layout of NeMo's own streaming export, for runtimes that load it (sherpa-onnx among them).

``encoder.onnx``, ``decoder.onnx``, ``joiner.onnx`` and ``tokens.txt``. The encoder computes what NeMo's export does:
its cache holds the *inputs* of the key and value projections, so every step projects all cached frames and the
position table again, and recomputes nine mel frames. That is several times the work of our own graph; this layout
exists for compatibility and as the peer in ``benchmarks/peers.py``.

    python -m parakeet_models.export.nemo_layout CHECKPOINT --out DIRECTORY [--int8 matmul] [--int8 published]
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Literal, get_args

import onnx
import onnxruntime as ort
import sentencepiece
import torch
import torch.nn.functional as F
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from parakeet_models.export.checkpoint import load_checkpoint
from parakeet_models.export.onnx import OPSET
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.network import EncoderState, NetworkConfig, ParakeetNetwork, StreamingEncoder
from parakeet_models.network.conformer import (
    MASKED,
    CausalConvolution,
    ConformerLayer,
    RelativeAttention,
    sinusoidal_positions,
)
from parakeet_models.network.subsampling import FREQUENCY_PADDING, length_mask

Recipe = Literal["matmul", "published"]
"""``matmul``: signed weights, matrix products only (the faster). ``published``: what sherpa-onnx's export scripts do,
unsigned weights of products and convolutions."""

PRE_ENCODE_CACHE = 9
"""Mel frames before the new ones that each window repeats."""
DROPPED = 2
"""Encoder frames at a window's start that belong to the step before: NeMo's ``drop_extra_pre_encoded``."""
MAX_POSITIONS = 5_000
"""NeMo's ``pos_emb_max_len``."""
VERIFIED_STEPS = 40
"""More than the 35 steps of two frames that fill the attention cache."""
TOLERANCE = 1e-4

ENCODER_INPUTS = ("audio_signal", "length", "cache_last_channel", "cache_last_time", "cache_last_channel_len")
ENCODER_OUTPUTS = (
    "outputs",
    "encoded_lengths",
    "cache_last_channel_next",
    "cache_last_time_next",
    "cache_last_channel_next_len",
)


class NemoEncoder(nn.Module):
    """One window of the encoder with NeMo's caches, batch first.

    The position table is cut by the window's length inside the graph, as in NeMo, so no optimiser can fold its
    projection into a constant.
    """

    def __init__(self, network: ParakeetNetwork, cache_drop: int = 0) -> None:
        """``cache_drop``: frames at a window's end that leave no trace in the caches (NeMo's ``cache_drop_size``): the
        next window begins with them.
        """
        super().__init__()
        self.config, self.encoder = network.config, network.encoder
        self.cache_drop = cache_drop
        distances = torch.arange(MAX_POSITIONS - 1, -MAX_POSITIONS, -1)
        self.register_buffer("table", sinusoidal_positions(distances, self.config.d_model)[None])

    def forward(
        self, mel: Tensor, length: Tensor, channel: Tensor, time: Tensor, channel_length: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """mel float[B, bins, T], length int64[B], channel [B, layers, left, d_model], time [B, layers, d_model,
        kernel - 1], channel_length int64[B] -> outputs [B, d_model, T'], int64[B], and the three new caches.
        """
        left = self.config.attention_left
        x, length = self.subsample(mel.transpose(1, 2), length)
        x, length = x[:, DROPPED:], (length - DROPPED).clamp(min=0)
        x = x * self.encoder.scale
        frames = x.shape[1]
        size = left + frames
        centre = self.table.shape[1] // 2 + 1
        positions = self.table[:, centre - size : centre + size - 1]
        index = torch.arange(size, device=x.device)[None]
        valid = (index < (length + left)[:, None]) & (index >= (left - channel_length)[:, None])
        hidden = self.hidden(valid, size)[:, left:]
        padding = ~valid[:, left:]
        kept = frames - self.cache_drop
        channels, times = [], []
        for index, layer in enumerate(self.encoder.layers):
            x, new_channel, new_time = _layer(
                layer, x, positions, hidden, padding, channel[:, index], time[:, index], kept
            )
            channels.append(new_channel)
            times.append(new_time)
        new_length = torch.clamp(channel_length + kept, max=left)
        return x.transpose(1, 2), length, torch.stack(channels, 1), torch.stack(times, 1), new_length

    def subsample(self, x: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, bins] -> ([B, T', d_model], length); masked before every module, as NeMo does."""
        x = x[:, None]
        mask = length_mask(length, x.shape[2])[:, None, :, None]
        for module in self.encoder.pre_encode.conv:
            x = x * mask
            strided = isinstance(module, nn.Conv2d) and module.stride != (1, 1)
            x = module(F.pad(x, (*FREQUENCY_PADDING, *FREQUENCY_PADDING)) if strided else x)
            if strided:
                length = length // 2 + 1
                mask = length_mask(length, x.shape[2])[:, None, :, None]
        return self.encoder.pre_encode.project(x * mask), length

    def hidden(self, valid: Tensor, size: Tensor) -> Tensor:
        """bool[B, size, size], True where a key is hidden: ``valid`` bool[B, size] and the chunked context."""
        chunk = torch.arange(size, device=valid.device) // self.config.attention_chunk
        behind = chunk[:, None] - chunk[None, :]
        seen = (behind >= 0) & (behind <= self.config.attention_left // self.config.attention_chunk)
        return ~(seen[None] & valid[:, None, :] & valid[:, :, None])


def _layer(
    layer: ConformerLayer,
    x: Tensor,
    positions: Tensor,
    hidden: Tensor,
    padding: Tensor,
    channel: Tensor,
    time: Tensor,
    kept: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """x [B, n, d_model] and one layer's caches -> x and the new caches, up to the first ``kept`` frames of x."""
    x = x + 0.5 * layer.feed_forward1(layer.norm_feed_forward1(x))
    y, channel = _attend(layer.self_attn, layer.norm_self_att(x), positions, hidden, channel, kept)
    x = x + y
    y, time = _convolve(layer.conv, layer.norm_conv(x), padding, time, kept)
    x = x + y
    x = x + 0.5 * layer.feed_forward2(layer.norm_feed_forward2(x))
    return layer.norm_out(x), channel, time


def _attend(
    module: RelativeAttention, x: Tensor, positions: Tensor, hidden: Tensor, cache: Tensor, kept: int
) -> tuple[Tensor, Tensor]:
    """Attention of x [B, n, d_model] over [cache | x]; the cache [B, left, d_model] holds projection inputs."""

    def heads(projected: Tensor) -> Tensor:
        return projected.view(projected.shape[0], -1, module.heads, module.head_size)

    both = torch.cat([cache, x], 1)
    new_cache = both[:, kept : kept + cache.shape[1]]
    q = heads(module.linear_q(x))
    k = heads(module.linear_k(both)).transpose(1, 2)
    v = heads(module.linear_v(both)).transpose(1, 2)
    p = heads(module.linear_pos(positions)).transpose(1, 2)
    by_content = torch.matmul((q + module.pos_bias_u).transpose(1, 2), k.transpose(-2, -1))
    by_position = torch.matmul((q + module.pos_bias_v).transpose(1, 2), p.transpose(-2, -1))
    batch, count, queries, columns = by_position.shape
    by_position = F.pad(by_position, (1, 0)).view(batch, count, -1, queries)
    by_position = by_position[:, :, 1:].view(batch, count, queries, columns)[..., : k.shape[2]]
    scores = (by_content + by_position) / math.sqrt(module.head_size)
    hidden = hidden[:, None]
    weights = scores.masked_fill(hidden, MASKED).softmax(-1).masked_fill(hidden, 0.0)
    return module.merge_heads(torch.matmul(weights, v)), new_cache


def _convolve(
    module: CausalConvolution, x: Tensor, padding: Tensor, cache: Tensor, kept: int
) -> tuple[Tensor, Tensor]:
    """The convolution module on x [B, n, d_model], channels first as NeMo has it; cache [B, d_model, kernel - 1]."""
    x = F.glu(module.pointwise_conv1(x.transpose(1, 2)), dim=1)
    x = torch.cat([cache, x.masked_fill(padding[:, None], 0.0)], -1)
    new_cache = x[..., kept : kept + cache.shape[-1]]
    x = module.batch_norm(module.depthwise_conv(x).transpose(1, 2)).transpose(1, 2)
    return module.pointwise_conv2(F.silu(x)).transpose(1, 2), new_cache


class NemoDecoder(nn.Module):
    """Prediction network: the embedding and the LSTM as they are."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.decoder = network.decoder

    def forward(
        self, targets: Tensor, length: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """targets int32[B, U], length int32[B], h and c [1, B, hidden] -> [B, hidden, U], length, new h and c."""
        out, (h, c) = self.decoder(targets, (h, c))
        return out.transpose(1, 2), length * 1, h, c


class NemoJoiner(nn.Module):
    """Joint network with both of its projections."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.joint = network.joint

    def forward(self, encoder: Tensor, prediction: Tensor) -> Tensor:
        """encoder [B, d_model, T], prediction [B, hidden, U] -> logits [B, T, U, vocabulary + 1]."""
        return self.joint(encoder.transpose(1, 2), prediction.transpose(1, 2))


def export_nemo_layout(network: ParakeetNetwork, pieces: list[str], directory: Path) -> float:
    """Write the three graphs and ``tokens.txt``; returns the largest difference from our streaming encoder.

    Raises:
        ValueError: ``pieces`` does not fit the network, or the graph computes something else than the network.
    """
    config = network.eval().config
    if len(pieces) != config.vocabulary:
        raise ValueError(f"{len(pieces)} pieces, the network has {config.vocabulary}")
    directory.mkdir(parents=True, exist_ok=True)
    window, hidden = window_size(config), config.prediction_hidden
    batch, middle = {0: "batch"}, {1: "batch"}
    _export(
        NemoEncoder(network),
        (torch.randn(2, config.mel_bins, window), torch.tensor([window, window]), *initial_caches(config, 2)),
        directory / "encoder.onnx",
        input_names=list(ENCODER_INPUTS),
        output_names=list(ENCODER_OUTPUTS),
        dynamic_axes={
            **dict.fromkeys((*ENCODER_INPUTS, *ENCODER_OUTPUTS), batch),
            "audio_signal": {0: "batch", 2: "mel_frames"},
            "outputs": {0: "batch", 2: "frames"},
        },
    )
    state = torch.zeros(1, 2, hidden)
    _export(
        NemoDecoder(network),
        (torch.zeros(2, 1, dtype=torch.int32), torch.ones(2, dtype=torch.int32), state, state),
        directory / "decoder.onnx",
        input_names=["targets", "target_length", "states.1", "states.2"],
        output_names=["outputs", "prednet_lengths", "states", "new_states"],
        dynamic_axes={
            **dict.fromkeys(("targets", "target_length", "outputs", "prednet_lengths"), batch),
            **dict.fromkeys(("states.1", "states.2", "states", "new_states"), middle),
        },
    )
    _export(
        NemoJoiner(network),
        (torch.randn(2, config.d_model, 1), torch.randn(2, hidden, 1)),
        directory / "joiner.onnx",
        input_names=["encoder_outputs", "decoder_outputs"],
        output_names=["outputs"],
        dynamic_axes=dict.fromkeys(("encoder_outputs", "decoder_outputs", "outputs"), batch),
    )
    _write_metadata(directory / "encoder.onnx", config)
    lines = [f"{piece} {index}" for index, piece in enumerate([*pieces, "<blk>"])]
    (directory / "tokens.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    worst = difference(network, directory / "encoder.onnx")
    if not worst <= TOLERANCE:
        raise ValueError(f"the exported encoder differs by {worst:.1e} from the network")
    return worst


def quantize_encoder(directory: Path, recipe: Recipe) -> Path:
    """Write and return ``encoder.int8-RECIPE.onnx`` beside ``encoder.onnx``, with ONNX Runtime's own quantiser."""
    target = directory / f"encoder.int8-{recipe}.onnx"
    if recipe == "matmul":
        options = {"weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul"]}
    else:
        options = {"weight_type": QuantType.QUInt8}
    quantize_dynamic(directory / "encoder.onnx", target, **options)
    return target


def window_size(config: NetworkConfig) -> int:
    """Mel frames of one window: those repeated, and one attention chunk of new ones."""
    return PRE_ENCODE_CACHE + SUBSAMPLING_FACTOR * config.attention_chunk


def initial_caches(config: NetworkConfig, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Caches of streams that have not begun."""
    return (
        torch.zeros(batch, config.layers, config.attention_left, config.d_model),
        torch.zeros(batch, config.layers, config.d_model, config.conv_kernel - 1),
        torch.zeros(batch, dtype=torch.int64),
    )


@torch.inference_mode()
def difference(network: ParakeetNetwork, encoder: Path) -> float:
    """Largest difference between the graph and our streaming encoder over VERIFIED_STEPS equal windows.

    This layout drops the first two encoder frames of a stream's first window. So our encoder runs its first step for
    the subsampling's memory alone and forgets the rest of it.
    """
    config = network.config
    session = ort.InferenceSession(str(encoder), providers=["CPUExecutionProvider"])
    streaming, state = StreamingEncoder(network), EncoderState.initial(config, 1)
    hop, window = SUBSAMPLING_FACTOR * config.attention_chunk, window_size(config)
    generator = torch.Generator().manual_seed(0)
    mel = (
        torch.randn(1, VERIFIED_STEPS * hop + PRE_ENCODE_CACHE, config.mel_bins, generator=generator) * 3 - 8
    )
    # What our first step would have been: frames 0 and 1, mel frames 0 to 8 of a chunk of two.
    first = hop - SUBSAMPLING_FACTOR + 1
    lead = F.pad(mel[:, :first], (0, 0, SUBSAMPLING_FACTOR, 0))
    streaming.step(lead, torch.tensor([SUBSAMPLING_FACTOR]), torch.tensor([hop + 1]), state)
    fresh = EncoderState.initial(config, 1)
    fresh.stage1, fresh.stage2 = state.stage1, state.stage2
    caches = [cache.numpy() for cache in initial_caches(config, 1)]
    worst = 0.0
    for start in range(0, VERIFIED_STEPS * hop, hop):
        inputs = [
            mel[:, start : start + window].transpose(1, 2).numpy(),
            torch.tensor([window]).numpy(),
            *caches,
        ]
        outputs, _, *caches = session.run(
            list(ENCODER_OUTPUTS), dict(zip(ENCODER_INPUTS, inputs, strict=True))
        )
        new = mel[:, start + first - 1 : start + first + hop]
        expected = streaming.step(new, torch.tensor([0]), torch.tensor([hop + 1]), fresh)
        found = network.joint.enc(torch.from_numpy(outputs).transpose(1, 2))
        worst = max(worst, float((found - expected).abs().max()))
    return worst


def _export(module: nn.Module, example: tuple[Tensor, ...], path: Path, **names: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # sizes that the tracer sees; `difference` tells whether one was frozen
        torch.onnx.export(module.eval(), example, path, opset_version=OPSET, dynamo=False, **names)


def _write_metadata(path: Path, config: NetworkConfig) -> None:
    """The properties sherpa-onnx reads; ``vocab_size`` does not count the blank."""
    model = onnx.load(path)
    properties = {
        "vocab_size": config.vocabulary,
        "window_size": window_size(config),
        "chunk_shift": SUBSAMPLING_FACTOR * config.attention_chunk,
        "normalize_type": "",
        "cache_last_channel_dim1": config.layers,
        "cache_last_channel_dim2": config.attention_left,
        "cache_last_channel_dim3": config.d_model,
        "cache_last_time_dim1": config.layers,
        "cache_last_time_dim2": config.d_model,
        "cache_last_time_dim3": config.conv_kernel - 1,
        "pred_rnn_layers": 1,
        "pred_hidden": config.prediction_hidden,
        "subsampling_factor": SUBSAMPLING_FACTOR,
        "feat_dim": config.mel_bins,
        "model_type": "EncDecRNNTBPEModel",
        "version": "1",
        "model_author": "NeMo",
        "url": "",
        "comment": "",
    }
    onnx.helper.set_model_props(model, {name: str(value) for name, value in properties.items()})
    onnx.save(model, path)


def read_pieces(tokenizer: bytes) -> list[str]:
    """Every piece of a SentencePiece model, in the order of their ids."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    return [processor.IdToPiece(index) for index in range(processor.GetPieceSize())]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m parakeet_models.export.nemo_layout", description="Export in NeMo's streaming layout."
    )
    parser.add_argument(
        "checkpoint", type=Path, help="directory with network.safetensors, config.json, tokenizer.model"
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument(
        "--int8", action="append", default=[], choices=get_args(Recipe), help="also quantise; repeatable"
    )
    arguments = parser.parse_args()
    checkpoint = load_checkpoint(arguments.checkpoint)
    pieces = read_pieces(checkpoint.tokenizer.read_bytes())
    worst = export_nemo_layout(checkpoint.network, pieces, arguments.out)
    print(f"{arguments.out}: differs from our streaming encoder by at most {worst:.1e}")
    for recipe in arguments.int8:
        print(quantize_encoder(arguments.out, recipe))


if __name__ == "__main__":
    main()
