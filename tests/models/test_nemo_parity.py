"""Our network, mel front end and greedy search against vectors that NVIDIA NeMo made (tests/golden)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from parakeet_live.audio.mel import StreamingMel
from parakeet_models.frames import subsampled_length, valid_frames
from parakeet_models.mel import MelParameters, hann_window, log_mel, mel_filterbank
from parakeet_models.network import (
    EncoderState,
    NetworkConfig,
    ParakeetNetwork,
    StreamingEncoder,
    greedy_decode,
)
from parakeet_models.network.streaming import MAX_STEP

GOLDEN = Path(__file__).parents[1] / "golden"
VARIANTS = ("a", "b", "c", "d")
TOLERANCE = 1e-4
CADENCES = (2, 4, 8, 16)
LENGTHS = (9, 17, 18, 25, 737, 738, 742, 745, 746, 753)


@dataclass(frozen=True)
class Golden:
    """One network with NeMo's weights and what NeMo computed with it."""

    network: ParakeetNetwork
    streaming: StreamingEncoder
    """Without its joint projection, so that its output is the encoder's."""
    vectors: dict[str, NDArray[np.float32]]

    def tensor(self, key: str) -> Tensor:
        return torch.from_numpy(self.vectors[key])

    def mel(self, frames: int | None = None) -> Tensor:
        """The input float32[frames, bins]; beyond its own length it starts again."""
        mel = self.tensor("mel")
        return mel if frames is None else torch.cat([mel] * (frames // len(mel) + 1))[:frames]


@lru_cache
def load(name: str) -> Golden:
    config = NetworkConfig(**json.loads((GOLDEN / f"network_{name}.json").read_text("utf-8"))["config"])
    network = ParakeetNetwork(config).eval().requires_grad_(False)
    with np.load(GOLDEN / f"network_{name}.weights.npz") as weights:
        network.load_state_dict({key: torch.from_numpy(weights[key]) for key in weights.files})
    streaming = StreamingEncoder(network).eval()
    streaming.projection = nn.Identity()  # type: ignore[assignment]
    with np.load(GOLDEN / f"network_{name}.vectors.npz") as vectors:
        return Golden(network, streaming, {key: vectors[key] for key in vectors.files})


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """These networks are too small for threads, which on a busy machine make the tests many times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=VARIANTS)
def golden(request: pytest.FixtureRequest) -> Golden:
    return load(request.param)


def difference(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max()) if ours.numel() else 0.0


def offline(golden: Golden, mel: Tensor) -> Tensor:
    return golden.network.encoder(mel[None], torch.tensor([len(mel)]))[0][0]


class Stream:
    """One stream's position in its mel; the steps' inputs with random, loud garbage where it is masked."""

    def __init__(self, mel: Tensor, seed: int = 0) -> None:
        self.mel, self.consumed = mel, 0
        self.random = torch.Generator().manual_seed(seed)

    @property
    def ended(self) -> bool:
        return self.consumed >= len(self.mel)

    def inputs(self, frames: int) -> tuple[Tensor, int, int]:
        """mel [8 * frames + 1, bins], begin and end of one step."""
        size = 8 * frames + 1
        chunk = torch.randn(size, self.mel.shape[1], generator=self.random) * 50.0
        begin = 0 if self.consumed else 8
        start = self.consumed - 1 if self.consumed else 0
        new = self.mel[start : start + size - begin]
        chunk[begin : begin + len(new)] = new
        self.consumed = start + len(new)
        return chunk, begin, begin + len(new)


def step(golden: Golden, state: EncoderState, streams: list[Stream], frames: int) -> list[Tensor]:
    """One batched step; each stream's valid output frames."""
    chunks, begins, ends = zip(*(stream.inputs(frames) for stream in streams), strict=True)
    end = torch.tensor(ends)
    out = golden.streaming.step(torch.stack(chunks), torch.tensor(begins), end, state)
    return [row[:count] for row, count in zip(out, valid_frames(end).tolist(), strict=True)]


def streamed(golden: Golden, mel: Tensor, cadences: Iterator[int], seed: int = 0) -> Tensor:
    stream, state = Stream(mel, seed), EncoderState.initial(golden.network.config, 1)
    out = []
    while not stream.ended:
        out.append(step(golden, state, [stream], next(cadences))[0])
    return torch.cat(out)


def mixed_cadences(seed: int) -> Iterator[int]:
    random = np.random.default_rng(seed)
    while True:
        yield int(random.choice(CADENCES))


# --- Files


def test_golden_weights_leave_nothing_trivial(golden: Golden) -> None:
    for name, value in golden.network.state_dict().items():
        if name == "decoder.prediction.embed.weight":
            assert not value[-1].any(), "the blank's embedding is the zero padding row"
            value = value[:-1]
        assert value.std() > 0.05, name


# --- Encoder


def test_encoder_offline(golden: Golden) -> None:
    assert difference(offline(golden, golden.mel()), golden.tensor("encoder_offline")) < TOLERANCE


def test_encoder_offline_with_garbage_in_the_padding(golden: Golden) -> None:
    mel, short = golden.mel(), 203
    batch = torch.stack([mel, torch.randn_like(mel) * 50.0])
    batch[1, :short] = mel[:short]
    out, length = golden.network.encoder(batch, torch.tensor([len(mel), short]))
    assert length.tolist() == [len(golden.vectors["encoder_offline"]), subsampled_length(short)]
    assert difference(out[0], golden.tensor("encoder_offline")) < TOLERANCE
    assert difference(out[1, : length[1]], offline(golden, mel[:short])) < TOLERANCE


def test_encoder_lengths() -> None:
    golden = load("d")
    for frames, expected in json.loads((GOLDEN / "lengths.json").read_text()).items():
        assert subsampled_length(int(frames)) == expected
        out, length = golden.network.encoder(golden.mel(int(frames))[None], torch.tensor([int(frames)]))
        assert length.tolist() == [expected]
        assert out.shape[1] == expected


@pytest.mark.parametrize("cadence", [2, 4, 8])
def test_encoder_streamed_as_nemo_streams(golden: Golden, cadence: int) -> None:
    """The same steps as NeMo's: frames of every step, cache lengths, and the output."""
    stream, state = Stream(golden.mel()), EncoderState.initial(golden.network.config, 1)
    done = 0
    for frames, cached in golden.vectors[f"steps_{cadence}"].tolist():
        out = step(golden, state, [stream], cadence)[0]
        expected = golden.tensor(f"encoder_streamed_{cadence}")[done : done + frames]
        assert difference(out, expected) < TOLERANCE
        done += frames
        if not stream.ended:  # After a partial step the caches are no longer meaningful.
            assert state.valid.tolist() == [cached]
    assert stream.ended


def test_caches_are_nemos(golden: Golden) -> None:
    """NeMo caches what goes into the key and value projections; ours holds what comes out, as a ring."""
    kept = sorted(
        int(key.rsplit("_", 1)[1]) for key in golden.vectors if key.startswith("cache_last_channel_")
    )
    assert kept
    stream, state = Stream(golden.mel()), EncoderState.initial(golden.network.config, 1)
    left = golden.network.config.attention_left
    for number in range(1, kept[-1] + 1):
        step(golden, state, [stream], 2)
        if number not in kept:
            continue
        valid = int(state.valid)
        oldest_first = (int(state.position) - valid + torch.arange(valid)) % left
        for index, layer in enumerate(golden.network.encoder.layers):
            attention = layer.self_attn
            inputs = golden.tensor(f"cache_last_channel_{number}")[index, left - valid :][None]
            keys, values = (
                attention.split_heads(f(inputs)) for f in (attention.linear_k, attention.linear_v)
            )
            for ring, expected in ((state.keys[index], keys), (state.values[index], values)):
                assert difference(ring[0, :, 0][:, oldest_first], expected[0]) < TOLERANCE
            convolution = golden.tensor(f"cache_last_time_{number}")[index].T
            assert difference(state.conv[index][0], convolution) < TOLERANCE


@pytest.mark.parametrize("cadence", CADENCES)
def test_streamed_equals_nemos_offline(golden: Golden, cadence: int) -> None:
    out = streamed(golden, golden.mel(), itertools.repeat(cadence))
    assert difference(out, golden.tensor("encoder_offline")) < TOLERANCE


@pytest.mark.parametrize("seed", range(4))
def test_mixed_cadences_equal_nemos_offline(golden: Golden, seed: int) -> None:
    out = streamed(golden, golden.mel(), mixed_cadences(seed), seed)
    assert difference(out, golden.tensor("encoder_offline")) < TOLERANCE


@pytest.mark.parametrize("frames", LENGTHS)
def test_streamed_equals_offline_for_the_lengths_of_the_contract(golden: Golden, frames: int) -> None:
    mel = golden.mel(frames)
    assert difference(streamed(golden, mel, mixed_cadences(frames), frames), offline(golden, mel)) < TOLERANCE


@pytest.mark.parametrize("cadence", CADENCES)
def test_streamed_equals_offline_for_every_tail(golden: Golden, cadence: int) -> None:
    """From a stream of one mel frame to three steps of two: every first step and every tail of 1 to 16 frames."""
    for frames in (*range(1, 26), *range(25 + 16 * 4, 25 + 16 * 5)):
        mel = golden.mel(frames)
        out = streamed(golden, mel, itertools.repeat(cadence), frames)
        assert difference(out, offline(golden, mel)) < TOLERANCE, frames


def test_batch_rows_of_different_age(golden: Golden) -> None:
    """A stream begins, and another ends, in steps that others share; each is as if it were alone."""
    mels = [golden.mel(300), golden.mel()[50:250], golden.mel()[100:170]]
    config = golden.network.config
    old = EncoderState.initial(config, 1)
    streams = [Stream(mel, seed) for seed, mel in enumerate(mels)]
    out = [[], [], []]
    for _ in range(4):
        out[0] += step(golden, old, streams[:1], 4)
    state = joined(old, EncoderState.initial(config, 2))
    for frames in (2, 8, 2):  # The third stream ends in the last of these, in the middle of the step.
        for row, part in enumerate(step(golden, state, streams, frames)):
            out[row].append(part)
    assert [stream.ended for stream in streams] == [False, False, True]
    state = joined(state, rows=2)
    while not all(stream.ended for stream in streams[:2]):
        for row, part in enumerate(step(golden, state, streams[:2], 4)):
            if part.numel():
                out[row].append(part)
    for mel, parts in zip(mels, out, strict=True):
        expected = offline(golden, mel)
        assert difference(torch.cat(parts)[: len(expected)], expected) < TOLERANCE


def joined(*states: EncoderState, rows: int | None = None) -> EncoderState:
    """The streams of several states as one batch, or its first ``rows``."""

    def cat(name: str) -> list[Tensor] | Tensor:
        values = [getattr(state, name) for state in states]
        if isinstance(values[0], list):
            return [torch.cat(layer)[:rows].clone() for layer in zip(*values, strict=True)]
        return torch.cat(values)[:rows].clone()

    names = ("stage1", "stage2", "keys", "values", "conv", "position", "valid")
    return EncoderState(**{name: cat(name) for name in names})  # type: ignore[arg-type]


@pytest.mark.parametrize("frames", [0, 1, 3, 7, MAX_STEP + 2])
def test_steps_that_cannot_be_exact_are_refused(frames: int) -> None:
    golden = load("a")
    state = EncoderState.initial(golden.network.config, 1)
    with pytest.raises(ValueError, match="step"):
        golden.streaming.step(
            torch.zeros(1, 8 * frames + 1, 128), torch.tensor([8]), torch.tensor([9]), state
        )
    assert state.valid.tolist() == [0]


# --- Prediction network, joint, greedy search


def test_prediction_network(golden: Golden) -> None:
    """Token by token and all at once; the start of sequence is the blank."""
    sequence = torch.cat([torch.tensor([golden.network.config.blank]), golden.tensor("prediction_tokens")])
    state = None
    for index, token in enumerate(sequence):
        out, state = golden.network.decoder(token[None, None], state)
        assert difference(out[0, 0], golden.tensor("prediction_outputs")[index]) < TOLERANCE
        assert difference(state[0][:, 0], golden.tensor("prediction_hidden")[index]) < TOLERANCE
        assert difference(state[1][:, 0], golden.tensor("prediction_cell")[index]) < TOLERANCE
    out, _ = golden.network.decoder(sequence[None])
    assert difference(out[0], golden.tensor("prediction_outputs")) < TOLERANCE


def test_joint(golden: Golden) -> None:
    encoded = golden.tensor("encoder_offline")[golden.vectors["joint_frames"]]
    logits = golden.network.joint(encoded[None], golden.tensor("prediction_outputs")[None])
    assert difference(logits[0], golden.tensor("joint_logits")) < TOLERANCE


@pytest.mark.parametrize("cadence", [None, *CADENCES])
def test_greedy_tokens(golden: Golden, cadence: int | None) -> None:
    """From mel to tokens, offline and streamed: the same ids on the same frames, and their probabilities."""
    mel = golden.mel()
    encoded = offline(golden, mel) if cadence is None else streamed(golden, mel, itertools.repeat(cadence))
    tokens = greedy_decode(golden.network, encoded)
    assert [token.token for token in tokens] == golden.vectors["greedy_tokens"].tolist()
    assert [token.frame for token in tokens] == golden.vectors["greedy_frames"].tolist()
    expected = golden.vectors["greedy_probabilities"]
    assert [token.probability for token in tokens] == pytest.approx(expected, abs=TOLERANCE)


# --- Mel front end


@lru_cache
def mel_vectors() -> dict[str, NDArray[np.float32]]:
    with np.load(GOLDEN / "mel.npz") as vectors:
        return {key: vectors[key] for key in vectors.files}


@pytest.mark.parametrize("bins", [80, 128])
def test_mel_tables(bins: int) -> None:
    vectors = mel_vectors()
    assert np.abs(hann_window(400) - vectors["window"]).max() < 1e-6
    assert np.abs(mel_filterbank(MelParameters(bins=bins)).T - vectors[f"filterbank_{bins}"]).max() < 1e-7


@pytest.mark.parametrize("bins", [80, 128])
@pytest.mark.parametrize("name", ["noise", "tones"])
def test_mel(name: str, bins: int) -> None:
    vectors, parameters = mel_vectors(), MelParameters(bins=bins)
    samples = vectors[name].astype(np.float32) / 32_768.0
    expected = vectors[f"{name}_mel_{bins}"]
    ours = log_mel(samples, parameters)
    assert len(ours) == vectors[f"{name}_frames"][1]
    assert_same_mel(ours, expected)
    # The stream cannot know the signal's end, so it is compared up to the last frame that does not see it.
    mel = StreamingMel(parameters)
    cuts = np.sort(np.random.default_rng(3).integers(0, len(samples), 25))
    for piece in np.split(samples, cuts):
        mel.push(piece)
    pieces = mel.read((mel.available - 1) // 8 * 8 + 1)
    assert_same_mel(pieces, expected[: len(pieces)])


def assert_same_mel(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> None:
    """Within float32's accuracy, which is one of the frame's power and not of each band's.

    A band far below a loud one keeps few digits in any float32 transform, and the logarithm shows it: NeMo itself
    is 6e-4 off the float64 result on the chirp (ours 2e-4).
    """
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-3
    power, expected = np.exp(ours.astype(np.float64)), np.exp(theirs.astype(np.float64))
    loudest = expected.max(1, keepdims=True)
    assert (np.abs(power - expected) / loudest).max() < 5e-6
    audible = expected > 1e-3 * loudest
    assert np.abs(ours - theirs)[audible].max() < TOLERANCE


def test_mel_frame_counts() -> None:
    for samples, frames in mel_vectors()["sample_and_frame_counts"].astype(int).tolist():
        assert log_mel(np.zeros(samples, np.float32), MelParameters(bins=80)).shape == (frames, 80)
