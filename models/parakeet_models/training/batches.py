"""Streams to tensors, in a few fixed shapes.

oneDNN compiles a set of primitives per tensor shape; with free lengths training spends most of its time doing
that (measured: 4 times slower). So streams are sorted into `LENGTHS` and batches have a fixed size for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from parakeet_models.frames import subsampled_length

from .features import MEL, Mel
from .sounds import IGNORED, SLOTS, sound_targets
from .streams import Difficulty, StreamComposer, Utterance
from .tokenizer import Tokenizer

LENGTHS = (250, 400, 600, 800, 1000, 1280, 1600)
"""Mel frames a stream is padded to."""

FRAME_SECONDS = 0.08
"""One encoder frame."""

EOU_DELAY = (0.2, 0.36)
"""When `<EOU>` should come, in seconds after the last word: a pause shorter than this is none, and a server may still
wait before it believes the end. The frame labels put it there; the transducer loss, to which any alignment is as good
as another, would wait for the longest pause it has ever heard."""

EOU_MISTIMED = -6.0
"""Log-probability added to alignments that put `<EOU>` outside `EOU_DELAY`."""

KNOWN_AFTER_S = 0.12
"""How long the frame labels hold on to a word after its end."""

NODES_STEP = 2048
"""Lattice nodes of a batch are rounded up to a multiple of this, for the sake of fixed shapes."""


@dataclass(frozen=True)
class Batch:
    """B streams. U: most labels, S: number of utterances, L: longest utterance + 1, T': encoder frames.

    Each utterance has a transducer lattice of its own, over the frames from the end of the one before to the latest
    moment of its own `<EOU>`. N: nodes of all lattices, in the order of `loss.transducer_loss`, rounded up.
    """

    mel: Tensor
    """float32[B, T, bins]"""
    mel_lengths: Tensor
    """int64[B]"""
    labels: Tensor
    """int64[B, U]: words and `<EOU>`s of the whole stream"""
    label_lengths: Tensor
    """int64[B]"""
    decoder_inputs: Tensor
    """int64[S, L]: each utterance on its own, the start symbol first"""
    node_frames: Tensor
    """int64[N]: the frame of a node, in the flattened [B * T']"""
    node_states: Tensor
    """int64[N]: the prediction of a node, in the flattened [S * L]"""
    node_labels: Tensor
    """int64[N]: the label that may come next"""
    node_bias: Tensor
    """float32[N]: `EOU_MISTIMED` where an `<EOU>` would come too early, else 0"""
    lattice_frames: Tensor
    """int64[R]"""
    lattice_labels: Tensor
    """int64[R]"""
    frame_labels: Tensor
    """int64[B, T']: token, blank, or `IGNORED` in the padding"""
    sounds: Tensor
    """int64[B, T', SLOTS]: `sounds.sound_targets`"""

    @property
    def seconds(self) -> float:
        """Audio in the batch without padding."""
        return float(self.mel_lengths.sum()) * MEL.hop_length / MEL.sample_rate


def frame_labels(frames: int, utterances: list[Utterance], tokenizer: Tokenizer) -> np.ndarray:
    """int64[frames]: the piece of a word from four fifths of it until `KNOWN_AFTER_S` behind it, `<EOU>` after the last
    word, else blank.

    Encoder frame k ends at 80 k ms, and a causal network knows a sound only when all of it has been said.
    """
    labels = np.full(frames, tokenizer.blank, np.int64)
    time = np.arange(frames) * FRAME_SECONDS
    for utterance in utterances:
        for word in utterance.words:
            pieces = tokenizer.word(word.text)
            length = (word.end - word.start) / len(pieces)
            for i, token in enumerate(pieces):
                known, end = word.start + (i + 0.8) * length, word.start + (i + 1) * length + KNOWN_AFTER_S
                labels[(time >= known) & (time < max(end, known + FRAME_SECONDS))] = token
        if utterance.closed:
            end = utterance.words[-1].end
            labels[(time >= end + EOU_DELAY[0]) & (time < end + EOU_DELAY[1])] = tokenizer.eou
    return labels


def _rounded_up(value: int, step: int) -> int:
    return max(step, -(-value // step) * step)


@dataclass
class _Lattices:
    """The lattices of a batch under construction; lists of NumPy arrays, one for each lattice."""

    frames: list[np.ndarray]
    states: list[np.ndarray]
    labels: list[np.ndarray]
    bias: list[np.ndarray]
    sizes: list[tuple[int, int]]

    def add(self, frames: np.ndarray, states: list[int], labels: list[int], bias: np.ndarray) -> None:
        """Frames int64[T], states and labels of length U + 1 (the last label counts for nothing), bias float[T]:
        what is added to the last label, `<EOU>`, at each frame."""
        count, width = len(frames), len(labels)
        self.frames.append(np.repeat(frames, width))
        self.states.append(np.tile(np.array(states, np.int64), count))
        self.labels.append(np.tile(np.array(labels, np.int64), count))
        nodes = np.zeros((count, width), np.float32)
        if width > 1:
            nodes[:, -2] = bias
        self.bias.append(nodes.reshape(-1))
        self.sizes.append((count, width - 1))


def _segments(
    frames: int, utterances: list[Utterance], tokenizer: Tokenizer
) -> list[tuple[int, int, list[int], bool, float]]:
    """First and one past the last frame, tokens, whether closed, and end in seconds, for every utterance and for what
    comes after the last one."""
    segments: list[tuple[int, int, list[int], bool, float]] = []
    start = 0
    for utterance in utterances:
        tokens = tokenizer.encode([word.text for word in utterance.words])
        end = utterance.words[-1].end
        stop = frames
        if utterance.closed:
            tokens = [*tokens, tokenizer.eou]
            stop = min(frames, int((end + EOU_DELAY[1]) / FRAME_SECONDS) + 1)
        if stop > start:
            segments.append((start, stop, tokens, utterance.closed, end))
            start = stop
    if start < frames and (not utterances or utterances[-1].closed):
        segments.append((start, frames, [], True, 0.0))
    return segments


def collate(examples: list[tuple[Mel, list[Utterance]]], tokenizer: Tokenizer, frames: int) -> Batch:
    """A batch of streams, padded to `frames` mel frames."""
    rows = len(examples)
    mel = torch.zeros(rows, frames, MEL.bins)
    encoder_frames = subsampled_length(frames)
    framewise = torch.full((rows, encoder_frames), IGNORED)
    heard = torch.full((rows, encoder_frames, SLOTS), IGNORED)
    sequences: list[list[int]] = []
    inputs: list[list[int]] = [[tokenizer.blank]]
    found: list[tuple[int, tuple[int, int, list[int], bool, float], int]] = []
    for row, (features, utterances) in enumerate(examples):
        mel[row, : len(features)] = torch.from_numpy(features)
        valid = subsampled_length(len(features))
        framewise[row, :valid] = torch.from_numpy(frame_labels(valid, utterances, tokenizer))
        heard[row, :valid] = torch.from_numpy(sound_targets(valid, utterances, FRAME_SECONDS))
        sequence: list[int] = []
        for segment in _segments(valid, utterances, tokenizer):
            tokens, closed = segment[2], segment[3]
            sequence += tokens
            found.append((row, segment, len(inputs) if tokens else 0))
            if tokens:
                # At run time the prediction network starts anew after <EOU>: it never sees <EOU> as an input.
                inputs.append([tokenizer.blank, *(tokens[:-1] if closed else tokens)])
        sequences.append(sequence)
    width = _rounded_up(max(len(tokens) for tokens in inputs), 4)
    decoder_inputs = torch.full((_rounded_up(len(inputs), 8), width), tokenizer.blank)
    for i, tokens in enumerate(inputs):
        decoder_inputs[i, : len(tokens)] = torch.tensor(tokens)
    lattices = _Lattices([], [], [], [], [])
    for row, (start, stop, tokens, closed, end), place in found:
        states = [place * width + i for i in range(len(tokens) + 1)]
        if closed:
            states[-1] = 0  # after <EOU>: a fresh start
        time = np.arange(start, stop) * FRAME_SECONDS
        early = np.where(closed & (time < end + EOU_DELAY[0]), np.float32(EOU_MISTIMED), np.float32(0))
        lattices.add(
            row * encoder_frames + np.arange(start, stop, dtype=np.int64),
            states,
            [*tokens, tokenizer.blank],
            early,
        )
    most = _rounded_up(max(len(sequence) for sequence in sequences), 6)
    labels = torch.zeros(rows, most, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        labels[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
    nodes = sum(len(part) for part in lattices.frames)
    padding = _rounded_up(nodes, NODES_STEP) - nodes

    def joined(parts: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.pad(np.concatenate(parts), (0, padding)))

    return Batch(
        mel=mel,
        mel_lengths=torch.tensor([len(features) for features, _ in examples]),
        labels=labels,
        label_lengths=torch.tensor([len(sequence) for sequence in sequences]),
        decoder_inputs=decoder_inputs,
        node_frames=joined(lattices.frames),
        node_states=joined(lattices.states),
        node_labels=joined(lattices.labels),
        node_bias=joined(lattices.bias),
        lattice_frames=torch.tensor([size[0] for size in lattices.sizes]),
        lattice_labels=torch.tensor([size[1] for size in lattices.sizes]),
        frame_labels=framewise,
        sounds=heard,
    )


class BatchSource:
    """Endless batches of about `seconds` of audio; `difficulty` may be changed between batches."""

    def __init__(self, composer: StreamComposer, tokenizer: Tokenizer, seconds: float) -> None:
        self._composer = composer
        self._tokenizer = tokenizer
        self._rows = [max(1, round(seconds * 100 / length)) for length in LENGTHS]
        self._waiting: list[list[tuple[Mel, list[Utterance]]]] = [[] for _ in LENGTHS]
        self.difficulty = Difficulty()

    def __iter__(self) -> Iterator[Batch]:
        while True:
            mel, utterances = self._composer.features(self.difficulty)
            bucket = next((i for i, length in enumerate(LENGTHS) if len(mel) <= length), None)
            if bucket is None or len(mel) < 40:
                continue
            self._waiting[bucket].append((mel, utterances))
            if len(self._waiting[bucket]) == self._rows[bucket]:
                examples, self._waiting[bucket] = self._waiting[bucket], []
                yield collate(examples, self._tokenizer, LENGTHS[bucket])
