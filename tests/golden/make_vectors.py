"""Reference vectors of small random-weight networks, computed by NVIDIA NeMo itself.

The project's own network, mel front end and decoder are compared with these files, so nothing here imports the
project. The script needs an environment of its own, because NeMo pins many packages (Python 3.11, CPU only):

    python -m venv nemo-venv
    nemo-venv/bin/pip install torch==2.13.0      # first and alone; the CPU wheel is enough
    nemo-venv/bin/pip install -r tests/golden/requirements-nemo.txt
    nemo-venv/bin/python tests/golden/make_vectors.py --out tests/golden

Pins: torch 2.13.0, nemo_toolkit 2.7.3, numpy 2.3.5, sentencepiece 0.2.0, librosa 0.11.0. The run takes about a
minute and is deterministic: all randomness comes from seeded NumPy generators, and one thread is used. README.md
beside this file says what each output holds.

Weights and mel inputs are float32 but rounded to few mantissa bits. That halves the compressed size and hides
nothing: the arithmetic between them is full float32.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nemo.collections.asr.modules import (
    AudioToMelSpectrogramPreprocessor,
    ConformerEncoder,
    RNNTDecoder,
    RNNTJoint,
)
from nemo.collections.asr.parts.submodules.rnnt_greedy_decoding import GreedyBatchedRNNTInfer, GreedyRNNTInfer
from nemo.utils import logging as nemo_logging
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

SILENCE = math.log(2.0**-24)
MAX_SYMBOLS = 10
TOKENS_PER_FRAME = 0.4
MAX_DRAWS = 400
CADENCES = (2, 4, 8)
CACHE_STEPS = (3, 40)
"""Steps of the two-frame cadence after which the complete caches are kept: partly filled, and wrapped."""

LENGTHS = (*range(1, 41), 737, 738, 742, 745, 746, 753)
TOLERANCE = 1e-5
"""Largest difference allowed between NeMo's own streamed and offline output before the files are refused."""


@dataclass(frozen=True)
class Variant:
    """One small network. The widths differ from each other on purpose: a mix-up changes a shape."""

    name: str
    seed: int
    mel_bins: int
    d_model: int
    layers: int
    heads: int
    subsampling_channels: int
    prediction_hidden: int
    joint_hidden: int
    vocabulary_size: int
    use_bias: bool
    xscaling: bool
    attention_left: int
    attention_right: int
    feed_forward_expansion: int
    conv_kernel: int
    reaches_max_symbols: bool
    """Whether one frame of the greedy result runs into the limit of tokens per frame, or none."""

    mel_frames: int
    """Length of the test input; every value leaves a tail that is not a whole step of any cadence."""


VARIANTS = (
    # As the published checkpoint: no biases, no scaling, 128 bands, 70 frames of left context.
    Variant("a", 11, 128, 32, 3, 4, 8, 24, 20, 30, False, False, 70, 1, 4, 9, True, 753),
    # As NeMo's streaming recipe: biases and scaling. 742 = 9 + 45 * 16 + 13.
    Variant("b", 22, 64, 24, 2, 2, 6, 16, 28, 20, True, True, 70, 1, 4, 9, False, 742),
    # A context shorter than most steps, so that the cache wraps inside one step. 746 = 9 + 46 * 16 + 1.
    Variant("c", 33, 80, 32, 4, 8, 8, 20, 24, 26, True, False, 6, 1, 2, 5, False, 746),
    # Left context not a multiple of most cadences, no biases but scaling. 431 = 9 + 26 * 16 + 6.
    Variant("d", 44, 80, 16, 2, 2, 5, 12, 12, 12, False, True, 10, 1, 4, 9, True, 431),
)


def rounded(values: NDArray[Any]) -> torch.Tensor:
    """float32 values with the eight mantissa bits of bfloat16."""
    return torch.from_numpy(np.asarray(values, np.float32)).bfloat16().float()


def pieces(size: int) -> list[str]:
    """A vocabulary in the order of the published one: unknown, words and letters, then the two specials."""
    letters = [f"{mark}{letter}" for letter in "abcdefghijklmnop" for mark in ("\u2581", "")]
    return ["<unk>", *letters[: size - 3], "<EOU>", "<EOB>"]


# --- Mel front end


def test_signals() -> dict[str, NDArray[np.int16]]:
    """Two signals whose lengths are not multiples of the hop."""
    random = np.random.default_rng(5)
    samples = 2 * 16_000 + 37
    level = np.abs(np.sin(np.arange(samples) * (2 * np.pi / 9_000.0))) ** 2
    noise = np.convolve(random.standard_normal(samples + 2), [0.5, 0.3, 0.2], "valid") * level * 0.2
    time = np.arange(2 * 16_000 + 3_313) / 16_000.0
    chirp = 0.5 * np.sin(2 * np.pi * (80.0 * time + 0.5 * 3_500.0 * time**2))
    burst = 0.9 * np.sin(2 * np.pi * 440.0 * time)
    tones = np.where(time < 0.8, chirp, np.where((time > 1.3) & (time < 1.45), burst, 0.0))
    tones[27_000] = -1.0  # An impulse in digital silence.
    return {"noise": to_int16(noise), "tones": to_int16(tones)}


def to_int16(signal: NDArray[np.float64]) -> NDArray[np.int16]:
    """Full scale ±1 to int16; read back as value / 32768."""
    return np.clip(np.round(signal * 32_768.0), -32_768, 32_767).astype(np.int16)


def preprocessor(bins: int) -> AudioToMelSpectrogramPreprocessor:
    """NeMo's front end with the settings of the checkpoint; no dither, no normalisation."""
    module = AudioToMelSpectrogramPreprocessor(
        sample_rate=16_000,
        window_size=0.025,
        window_stride=0.01,
        window="hann",
        normalize="NA",
        n_fft=512,
        features=bins,
        dither=0.0,
        pad_to=0,
        frame_splicing=1,
    )
    return module.eval()


def mel_vectors() -> Arrays:
    """Signals, NeMo's valid mel frames as [frames, bins], its tables, and frame counts."""
    arrays: Arrays = {}
    signals = test_signals()
    for bins in (128, 80):
        module = preprocessor(bins)
        arrays[f"filterbank_{bins}"] = module.featurizer.fb[0].numpy()
        arrays["window"] = module.featurizer.window.numpy()
        for name, signal in signals.items():
            samples = torch.from_numpy(signal.astype(np.float32) / 32_768.0)[None]
            mel, valid = module(input_signal=samples, length=torch.tensor([samples.shape[1]]))
            arrays[name] = signal
            arrays[f"{name}_mel_{bins}"] = mel[0, :, : int(valid)].T.contiguous().numpy()
            # NeMo returns one frame more than is valid and overwrites it with 0.0, which is loud, not silent.
            arrays[f"{name}_frames"] = np.array([mel.shape[2], int(valid)], np.int64)
            if mel.shape[2] != int(valid) + 1 or bool(mel[0, :, -1].any()):
                raise AssertionError("NeMo's extra frame is not as documented")
    module = preprocessor(80)
    counts = [
        (n, int(module.featurizer.get_seq_len(torch.tensor(n))))
        for n in (0, 1, 159, 160, 161, 319, 400, 16_001)
    ]
    arrays["sample_and_frame_counts"] = np.array(counts, np.int64)
    return arrays


def test_mel(variant: Variant) -> torch.Tensor:
    """Made-up log-mel float32[1, bins, frames] with the range, tilt and time structure of speech.

    Values are multiples of 1/16, between digital silence and about +4.
    """
    random = np.random.default_rng(variant.seed + 1_000)
    frames, bins = variant.mel_frames, variant.mel_bins
    state = np.zeros(bins)
    bands = np.zeros((frames, bins))
    kernel = np.array([0.15, 0.2, 0.3, 0.2, 0.15])
    for index in range(frames):  # Correlated from frame to frame and from band to band.
        state = 0.8 * state + np.convolve(random.standard_normal(bins + 4), kernel, "valid") * 2.4
        bands[index] = state
    syllables = np.repeat(random.uniform(-7.0, 0.0, frames // 12 + 1), 12)[:frames, None]
    mel = -2.5 + syllables - 3.0 * np.linspace(0.0, 1.0, bins)[None] + bands
    mel[frames // 3 : frames // 3 + 40] = SILENCE
    mel = np.clip(np.round(mel * 16.0) / 16.0, SILENCE, 4.0)
    return torch.from_numpy(mel.astype(np.float32).T.copy())[None]


# --- Network


def build(variant: Variant) -> tuple[ConformerEncoder, RNNTDecoder, RNNTJoint]:
    """NeMo's three modules for one variant, with random weights everywhere."""
    encoder = ConformerEncoder(
        feat_in=variant.mel_bins,
        n_layers=variant.layers,
        d_model=variant.d_model,
        subsampling="dw_striding",
        subsampling_factor=8,
        subsampling_conv_channels=variant.subsampling_channels,
        causal_downsampling=True,
        ff_expansion_factor=variant.feed_forward_expansion,
        self_attention_model="rel_pos",
        n_heads=variant.heads,
        att_context_size=[variant.attention_left, variant.attention_right],
        att_context_style="chunked_limited",
        xscaling=variant.xscaling,
        untie_biases=True,
        pos_emb_max_len=5_000,
        conv_kernel_size=variant.conv_kernel,
        conv_norm_type="layer_norm",
        conv_context_size="causal",
        use_bias=variant.use_bias,
    )
    decoder = RNNTDecoder(
        prednet={"pred_hidden": variant.prediction_hidden, "pred_rnn_layers": 1, "dropout": 0.0},
        vocab_size=variant.vocabulary_size,
        blank_as_pad=True,
    )
    joint = RNNTJoint(
        jointnet={
            "encoder_hidden": variant.d_model,
            "pred_hidden": variant.prediction_hidden,
            "joint_hidden": variant.joint_hidden,
            "activation": "relu",
            "dropout": 0.2,  # Gives the last layer the index 2, as in the checkpoint; inactive.
        },
        num_classes=variant.vocabulary_size,
        vocabulary=pieces(variant.vocabulary_size),
        log_softmax=False,
    )
    for prefix, module in (("encoder", encoder), ("decoder", decoder), ("joint", joint)):
        randomise(prefix, module.eval(), np.random.default_rng(variant.seed))
    return encoder, decoder, joint


def randomise(prefix: str, module: torch.nn.Module, random: np.random.Generator) -> None:
    """Replace every parameter of one module."""
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(False)
        parameter.data = random_weight(f"{prefix}.{name}", tuple(parameter.shape), random)


def random_weight(name: str, shape: tuple[int, ...], random: np.random.Generator) -> torch.Tensor:
    """A random value for every parameter, so that no bias is 0 and no scale is 1."""
    normal = random.standard_normal(shape)
    leaf = name.rsplit(".", 1)[-1]
    if leaf.startswith("pos_bias"):
        return rounded(normal * 0.5)
    if "norm" in name:
        return rounded(random.uniform(0.6, 1.4, shape) if leaf == "weight" else normal * 0.2)
    if name.endswith("embed.weight"):
        normal[-1] = 0.0  # The blank's row is the padding row, which NeMo keeps at zero.
        return rounded(normal)
    if len(shape) == 1:
        return rounded(normal * 0.2)
    if name.endswith(
        "conv.0.weight"
    ):  # Log-mel has a large mean; without this, ReLU kills half the channels.
        normal -= 0.8 * normal.mean(axis=(2, 3), keepdims=True)
    gain = 2.0 if name.startswith(("decoder", "joint")) else 1.3
    return rounded(normal * gain / math.sqrt(math.prod(shape[1:])))


def stream(
    encoder: ConformerEncoder, mel: torch.Tensor, cadence: int, keep: Callable[[int, Any], None] | None = None
) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    """NeMo's cache-aware loop over one utterance; returns the outputs and (frames, cache length) after each step.

    As NeMo's streaming buffer, without ``pad_and_drop_preencoded``: the first step has no pre-encode cache and
    drops nothing. Unlike that buffer, a tail of fewer than eight mel frames is processed too.
    """
    encoder.setup_streaming_params(chunk_size=cadence, shift_size=cadence)
    config = encoder.streaming_cfg
    channel, time, channel_len = encoder.get_initial_cache_state(batch_size=1)
    outputs: list[torch.Tensor] = []
    steps: list[tuple[int, int]] = []
    begin, total = 0, mel.shape[2]
    while begin < total:
        first = begin == 0
        end = min(total, begin + config.shift_size[0 if first else 1])
        chunk = mel[:, :, begin - config.pre_encode_cache_size[0 if first else 1] : end]
        out, out_len, channel, time, channel_len = encoder.cache_aware_stream_step(
            processed_signal=chunk,
            processed_signal_length=torch.tensor([chunk.shape[2]]),
            cache_last_channel=channel,
            cache_last_time=time,
            cache_last_channel_len=channel_len,
            keep_all_outputs=end == total,
            drop_extra_pre_encoded=0 if first else config.drop_extra_pre_encoded,
        )
        outputs.append(out[:, :, : int(out_len)])
        steps.append((int(out_len), int(channel_len)))
        if keep is not None:
            keep(len(steps), (channel, time))
        begin = end
    return torch.cat(outputs, 2), steps


def encoder_vectors(
    variant: Variant, encoder: ConformerEncoder, mel: torch.Tensor
) -> tuple[Arrays, dict[str, Any]]:
    """Offline and streamed encoder output as [frames, d_model], and caches after some steps."""
    arrays: Arrays = {}
    facts: dict[str, Any] = {}
    offline, length = encoder(audio_signal=mel, length=torch.tensor([mel.shape[2]]))
    if int(length) != offline.shape[2]:
        raise AssertionError("declared and actual length differ")
    arrays["encoder_offline"] = offline[0].T.contiguous().numpy()

    def keep_caches(step: int, caches: tuple[torch.Tensor, torch.Tensor]) -> None:
        if step in CACHE_STEPS:
            arrays[f"cache_last_channel_{step}"] = caches[0][:, 0].numpy().copy()
            arrays[f"cache_last_time_{step}"] = caches[1][:, 0].numpy().copy()

    for cadence in CADENCES:
        streamed, steps = stream(encoder, mel, cadence, keep_caches if cadence == 2 else None)
        difference = float((streamed - offline).abs().max())
        if difference > TOLERANCE:
            raise AssertionError(
                f"{variant.name}: NeMo streamed {cadence} differs from offline by {difference}"
            )
        arrays[f"encoder_streamed_{cadence}"] = streamed[0].T.contiguous().numpy()
        arrays[f"steps_{cadence}"] = np.array(steps, np.int64)
        facts[f"streamed_{cadence}_minus_offline"] = difference
    facts["encoder_absolute_maximum"] = float(offline.abs().max())
    facts["encoder_deviation_over_time"] = float(offline.std(2).mean())
    return arrays, facts


def greedy(decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor) -> tuple[list[int], list[int], Any]:
    """NeMo's greedy search by frames; label ids, frame numbers, and the logits of every decision."""
    search = GreedyRNNTInfer(
        decoder_model=decoder,
        joint_model=joint,
        blank_index=decoder.blank_idx,
        max_symbols_per_step=MAX_SYMBOLS,
        preserve_alignments=True,
    )
    length = torch.tensor([encoded.shape[2]])
    hypothesis = search(encoder_output=encoded, encoded_lengths=length)[0][0]
    return (
        hypothesis.y_sequence.tolist(),
        [int(frame) for frame in hypothesis.timestamp],
        hypothesis.alignments,
    )


def tune_decoder(
    variant: Variant, decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor
) -> dict[str, Any]:
    """Draw decoder and joint weights until greedy search gives a varied token sequence; facts about it."""
    for draw in range(MAX_DRAWS):
        random = np.random.default_rng((variant.seed, draw))
        randomise("decoder", decoder, random)
        randomise("joint", joint, random)
        shape_joint(variant, decoder, joint, encoded)
        tune_blank(decoder, joint, encoded, TOKENS_PER_FRAME)
        facts = greedy_facts(decoder, joint, encoded)
        if (
            0.2 <= facts["tokens_per_encoder_frame"] <= 0.5
            and facts["distinct_tokens"] >= variant.vocabulary_size // 3 + 1
            and facts["frames_with_several_tokens"] >= 4
            and facts["frames_at_max_symbols"] == int(variant.reaches_max_symbols)
            and facts["smallest_margin"] >= 5e-3
        ):
            return facts
    raise AssertionError(f"{variant.name}: no draw gave a varied token sequence")


def shape_joint(variant: Variant, decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor) -> None:
    """Make the joint's decisions vary with the frames and with the last label.

    Plain random weights repeat one label up to the limit on some frames and are blank on the others. So the
    encoder half is centred and scaled on this encoder's output, and every label is made less likely after itself.
    """
    frame_mean, deviation = encoded[0].mean(1), float(encoded[0].std(1).mean())
    joint.enc.weight.data = rounded((joint.enc.weight * (0.35 / deviation)).numpy())
    joint.enc.bias.data = rounded((joint.enc.bias - joint.enc.weight @ frame_mean).numpy())
    joint.pred.weight.data = rounded((joint.pred.weight * 1.5).numpy())
    after_label, _ = decoder.predict(torch.arange(variant.vocabulary_size)[:, None], None, add_sos=False)
    features = torch.relu(joint.pred(after_label[:, 0]) + joint.enc(frame_mean))
    features -= features.mean(0)
    weight = joint.joint_net[-1].weight.clone()
    weight[:-1] -= 5.0 * features / features.square().sum(1).mean()
    joint.joint_net[-1].weight.data = rounded(weight.numpy())


def greedy_facts(decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor) -> dict[str, Any]:
    """What the greedy result looks like, and how robust its decisions are."""
    tokens, frames, alignments = greedy(decoder, joint, encoded)
    per_frame = np.bincount(frames, minlength=encoded.shape[2])
    best = [torch.topk(logits, 2).values for frame in alignments for logits, _ in frame]
    return {
        "tokens": len(tokens),
        "tokens_per_encoder_frame": len(tokens) / encoded.shape[2],
        "distinct_tokens": len(set(tokens)),
        "frames_with_several_tokens": int((per_frame > 1).sum()),
        "frames_at_max_symbols": int((per_frame == MAX_SYMBOLS).sum()),
        # How far rounding may move the logits before a decision changes.
        "smallest_margin": min(float(top[0] - top[1]) for top in best),
    }


def tune_blank(decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor, rate: float) -> None:
    """Bisect the blank's bias until about ``rate`` tokens are emitted per frame."""
    bias = joint.joint_net[-1].bias
    low, high = -20.0, 20.0
    for _ in range(10):
        middle = 0.5 * (low + high)
        bias.data[-1] = rounded(np.array([middle]))[0]
        if len(greedy(decoder, joint, encoded)[0]) > rate * encoded.shape[2]:
            low = middle
        else:
            high = middle


def decoder_vectors(
    variant: Variant, decoder: RNNTDecoder, joint: RNNTJoint, encoded: torch.Tensor
) -> tuple[Arrays, dict[str, Any]]:
    """Greedy tokens of the offline output, prediction network over a fixed sequence, joint logits of some pairs."""
    arrays: Arrays = {}
    facts = tune_decoder(variant, decoder, joint, encoded)
    tokens, frames, alignments = greedy(decoder, joint, encoded)
    batched = GreedyBatchedRNNTInfer(
        decoder_model=decoder,
        joint_model=joint,
        blank_index=decoder.blank_idx,
        max_symbols_per_step=MAX_SYMBOLS,
        loop_labels=True,
        use_cuda_graph_decoder=False,
    )
    looped = batched(encoder_output=encoded, encoded_lengths=torch.tensor([encoded.shape[2]]))[0][0]
    if looped.y_sequence.tolist() != tokens or [int(frame) for frame in looped.timestamp] != frames:
        raise AssertionError("NeMo's two greedy searches differ")
    decisions = [(logits, int(label)) for frame in alignments for logits, label in frame]
    probabilities = [
        float(torch.softmax(logits.double(), 0)[label])
        for logits, label in decisions
        if label != decoder.blank_idx
    ]
    arrays["greedy_tokens"] = np.array(tokens, np.int64)
    arrays["greedy_frames"] = np.array(frames, np.int64)
    arrays["greedy_probabilities"] = np.array(probabilities, np.float32)

    # Prediction network: output and state after the start of sequence (no label) and after every label.
    random = np.random.default_rng(variant.seed + 2_000)
    sequence = random.integers(0, variant.vocabulary_size, 12)
    output, state = decoder.predict(None, None, add_sos=False, batch_size=1)
    outputs, hidden, cell = [output[0, 0]], [state[0][:, 0]], [state[1][:, 0]]
    for label in sequence:
        output, state = decoder.predict(torch.tensor([[int(label)]]), state, add_sos=False)
        outputs.append(output[0, 0])
        hidden.append(state[0][:, 0])
        cell.append(state[1][:, 0])
    blank, _ = decoder.predict(torch.tensor([[decoder.blank_idx]]), None, add_sos=False)
    if not torch.equal(blank[0, 0], outputs[0]):
        raise AssertionError("the blank label is not equal to the start of sequence")
    arrays["prediction_tokens"] = sequence.astype(np.int64)
    arrays["prediction_outputs"] = torch.stack(outputs).numpy()
    arrays["prediction_hidden"] = torch.stack(hidden).numpy()
    arrays["prediction_cell"] = torch.stack(cell).numpy()

    # Joint network: raw logits of every pair of a few encoder frames and all of the outputs above.
    chosen = np.array([0, 1, 17, encoded.shape[2] // 2, encoded.shape[2] - 1], np.int64)
    logits = joint.joint(encoded[:, :, chosen].transpose(1, 2), torch.stack(outputs)[None])
    arrays["joint_frames"] = chosen
    arrays["joint_logits"] = logits[0].numpy()
    return arrays, facts


def write_variant(variant: Variant, out: Path) -> None:
    """Weights, vectors and configuration of one variant."""
    encoder, decoder, joint = build(variant)
    mel = test_mel(variant)
    vectors, facts = encoder_vectors(variant, encoder, mel)
    encoded = torch.from_numpy(vectors["encoder_offline"]).T[None]
    more, decoder_facts = decoder_vectors(variant, decoder, joint, encoded)
    vectors |= more
    facts |= decoder_facts
    for cadence in CADENCES:
        streamed = torch.from_numpy(vectors[f"encoder_streamed_{cadence}"]).T[None]
        if greedy(decoder, joint, streamed)[:2] != greedy(decoder, joint, encoded)[:2]:
            raise AssertionError(f"{variant.name}: tokens of the streamed output differ")
    weights: Arrays = {}
    for prefix, module in (("encoder", encoder), ("decoder", decoder), ("joint", joint)):
        for name, value in module.state_dict().items():
            weights[f"{prefix}.{name}"] = value.numpy()
    configuration = asdict(variant)
    for key in ("name", "seed", "reaches_max_symbols", "mel_frames"):
        del configuration[key]
    configuration["vocabulary"] = configuration.pop("vocabulary_size")
    np.savez_compressed(out / f"network_{variant.name}.weights.npz", allow_pickle=False, **weights)
    np.savez_compressed(
        out / f"network_{variant.name}.vectors.npz",
        allow_pickle=False,
        mel=mel[0].T.contiguous().numpy(),
        **vectors,
    )
    description = {
        "config": configuration,
        "pieces": pieces(variant.vocabulary_size),
        "max_symbols": MAX_SYMBOLS,
        "facts": facts,
    }
    write_json(out / f"network_{variant.name}.json", description)
    print(variant.name, sum(value.size for value in weights.values()), json.dumps(facts))


def length_table(variant: Variant) -> dict[str, int]:
    """Number of encoder frames NeMo's whole encoder gives for a number of mel frames; equal for all variants."""
    encoder, _, _ = build(variant)
    table: dict[str, int] = {}
    for length in LENGTHS:
        out, declared = encoder(
            audio_signal=torch.zeros(1, variant.mel_bins, length), length=torch.tensor([length])
        )
        if out.shape[2] != int(declared):
            raise AssertionError("declared and actual length differ")
        table[str(length)] = int(declared)
    return table


def write_json(path: Path, value: dict[str, Any]) -> None:
    """JSON with a stable layout, so that a regenerated file shows only real changes."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Write every file into the folder given by ``--out``."""
    parser = argparse.ArgumentParser(description="Write NeMo's reference vectors.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    nemo_logging.setLevel(nemo_logging.ERROR)
    torch.set_num_threads(1)
    with torch.inference_mode():
        np.savez_compressed(out / "mel.npz", allow_pickle=False, **mel_vectors())
        write_json(out / "lengths.json", length_table(VARIANTS[1]))
        for variant in VARIANTS:
            write_variant(variant, out)


if __name__ == "__main__":
    main()
