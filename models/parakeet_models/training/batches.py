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
from .streams import Difficulty, StreamComposer, Utterance
from .tokenizer import Tokenizer

LENGTHS = (250, 400, 600, 800, 1000, 1280, 1600)
"""Mel frames a stream is padded to."""

FRAME_SECONDS = 0.08
"""One encoder frame."""

EOU_DELAY = (0.16, 0.42)
"""When `<EOU>` should come, in seconds after the last word: a pause shorter than this is none, and a server may still
wait before it believes the end. The frame labels put it there; the transducer loss, to which any alignment is as good
as another, would wait for the longest pause it has ever heard."""

EOU_MISTIMED = -6.0
"""Log-probability added to alignments that put `<EOU>` outside `EOU_DELAY`."""

IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """B streams. U: most labels, S: number of utterances, L: longest utterance + 1, T': encoder frames."""

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
    decoder_index: Tensor
    """int64[B, U + 1]: where in the flattened [S * L] the prediction for each label position lies"""
    label_bias: Tensor
    """float32[B, T', U]: `EOU_MISTIMED` where an `<EOU>` would come at the wrong time, else 0"""
    frame_labels: Tensor
    """int64[B, T']: token, blank, or `IGNORED` in the padding"""

    @property
    def seconds(self) -> float:
        """Audio in the batch without padding."""
        return float(self.mel_lengths.sum()) * MEL.hop_length / MEL.sample_rate


def frame_labels(frames: int, utterances: list[Utterance], tokenizer: Tokenizer) -> np.ndarray:
    """int64[frames]: the piece of a word where the second half of it sounds, `<EOU>` after the last word, else blank.

    Encoder frame k ends at 80 k ms, and a causal network knows a sound only when most of it has been said.
    """
    labels = np.full(frames, tokenizer.blank, np.int64)
    time = np.arange(frames) * FRAME_SECONDS
    for utterance in utterances:
        for word in utterance.words:
            pieces = tokenizer.word(word.text)
            length = (word.end - word.start) / len(pieces)
            for i, token in enumerate(pieces):
                middle, end = word.start + (i + 0.45) * length, word.start + (i + 1) * length
                labels[(time >= middle) & (time < max(end, middle + FRAME_SECONDS))] = token
        if utterance.closed:
            end = utterance.words[-1].end
            labels[(time >= end + EOU_DELAY[0]) & (time < end + EOU_DELAY[1])] = tokenizer.eou
    return labels


def _rounded_up(value: int, step: int) -> int:
    return max(step, -(-value // step) * step)


def collate(examples: list[tuple[Mel, list[Utterance]]], tokenizer: Tokenizer, frames: int) -> Batch:
    """A batch of streams, padded to `frames` mel frames."""
    rows = len(examples)
    mel = torch.zeros(rows, frames, MEL.bins)
    encoder_frames = subsampled_length(frames)
    framewise = torch.full((rows, encoder_frames), IGNORED)
    sequences: list[list[int]] = []
    segments: list[list[int]] = []
    places: list[list[tuple[int, int]]] = []
    ends: list[tuple[int, int, float]] = []
    for row, (features, utterances) in enumerate(examples):
        mel[row, : len(features)] = torch.from_numpy(features)
        valid = subsampled_length(len(features))
        framewise[row, :valid] = torch.from_numpy(frame_labels(valid, utterances, tokenizer))
        sequence: list[int] = []
        place: list[tuple[int, int]] = []
        for utterance in utterances:
            tokens = tokenizer.encode([word.text for word in utterance.words])
            # At run time the prediction network starts anew after <EOU>: it never sees <EOU> as an input.
            place += [(len(segments), i) for i in range(len(tokens) + utterance.closed)]
            segments.append([tokenizer.blank, *tokens])
            sequence += tokens + [tokenizer.eou] * utterance.closed
            if utterance.closed:
                ends.append((row, len(sequence) - 1, utterance.words[-1].end))
        # What is predicted after the last label: a fresh start, or the state inside a broken-off utterance.
        open_end = bool(utterances) and not utterances[-1].closed
        place.append((len(segments) - 1, len(segments[-1]) - 1) if open_end else (0, 0))
        sequences.append(sequence)
        places.append(place)
    segments = segments or [[tokenizer.blank]]
    width = _rounded_up(max(len(segment) for segment in segments), 4)
    inputs = torch.full((_rounded_up(len(segments), 8), width), tokenizer.blank)
    for i, segment in enumerate(segments):
        inputs[i, : len(segment)] = torch.tensor(segment)
    most = _rounded_up(max(len(sequence) for sequence in sequences), 6)
    labels = torch.zeros(rows, most, dtype=torch.int64)
    index = torch.zeros(rows, most + 1, dtype=torch.int64)
    for row, (sequence, place) in enumerate(zip(sequences, places, strict=True)):
        labels[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
        index[row, : len(place)] = torch.tensor([segment * width + i for segment, i in place])
    bias = torch.zeros(rows, encoder_frames, most)
    time = torch.arange(encoder_frames) * FRAME_SECONDS
    for row, position, end in ends:
        bias[row, (time < end + EOU_DELAY[0]) | (time > end + EOU_DELAY[1]), position] = EOU_MISTIMED
    return Batch(
        mel=mel,
        mel_lengths=torch.tensor([len(features) for features, _ in examples]),
        labels=labels,
        label_lengths=torch.tensor([len(sequence) for sequence in sequences]),
        decoder_inputs=inputs,
        decoder_index=index,
        label_bias=bias,
        frame_labels=framewise,
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
