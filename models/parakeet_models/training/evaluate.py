"""Greedy decoding of whole recordings, and the four figures that matter: word errors, ends found, ends that
came early, words heard in noise."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import torch
from torch import Tensor

from parakeet_models.network import ParakeetNetwork

from .batches import FRAME_SECONDS
from .clips import SAMPLE_RATE, Samples, read_shard, to_16k
from .features import log_mel
from .grammar import vocabulary
from .lexicon import DIGITS
from .library import kind_of
from .noises import MAKERS, unit
from .synthesis import HELD_OUT_SUFFIX
from .tokenizer import Tokenizer

_MAX_SYMBOLS = 10
TRAILING_SILENCE_S = 1.2
"""Digital silence after each recording, as a server appends when a stream ends."""


@dataclass(frozen=True)
class Recording:
    """A recording to measure with."""

    samples: Samples
    text: str
    group: str


@dataclass
class Tally:
    """Counts over a group of recordings."""

    recordings: int = 0
    words: int = 0
    errors: int = 0
    ends_missing: int = 0
    ends_early: int = 0
    delays: list[float] | None = None

    def summary(self) -> dict[str, float | int]:
        """Rates in percent, delays in milliseconds from the last loud sample to the frame of `<EOU>`."""
        delays = self.delays or [0.0]
        return {
            "recordings": self.recordings,
            "words": self.words,
            "wer": round(100 * self.errors / max(1, self.words), 2),
            "eou_missing": self.ends_missing,
            "eou_early": self.ends_early,
            "eou_delay_ms_p50": round(float(np.percentile(delays, 50)) * 1000),
            "eou_delay_ms_p90": round(float(np.percentile(delays, 90)) * 1000),
        }


def plain_words(text: str) -> str:
    """A reference text as the model writes: lower case, digits as words, no punctuation."""
    text = text.lower().replace("a.m.", "am").replace("p.m.", "pm").replace("-", " ").replace("x ray", "xray")
    text = re.sub(r"[0-9]", lambda digit: f" {DIGITS[int(digit[0])]} ", text)
    return " ".join(word.strip("'") for word in re.sub(r"[^a-z' ]", " ", text).split())


def read_manifest(path: Path, kinds: Sequence[str]) -> list[Recording]:
    """Recordings of the given kinds from a JSON Lines manifest; groups are `kind/speaker`.

    Recordings with words that the model is not meant to know are left out.
    """
    known, found = vocabulary(), []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        text = plain_words(row["text"])
        if row["kind"] in kinds and text and set(text.split()) <= known:
            audio, rate = soundfile.read(path.parent / row["audio"], dtype="float32")
            found.append(Recording(to_16k(audio, rate), text, f"{row['kind']}/{row['speaker']}"))
    return found


def read_held_out(shards: Path) -> list[Recording]:
    """The clips of the held-out voices in the shards under a folder, but for the word salads."""
    return [
        Recording(
            clip.samples, clip.text, f"heldout-{'word' if kind_of(clip) == 'word' else 'phrase'}/{clip.voice}"
        )
        for path in sorted(shards.glob(f"*{HELD_OUT_SUFFIX}/*.json"))
        for clip in read_shard(path)
        if set(clip.words) <= vocabulary() and not clip.rushed
    ]


@torch.inference_mode()
def decode(network: ParakeetNetwork, mels: Sequence[np.ndarray], eou: int) -> list[list[tuple[int, int]]]:
    """Greedy tokens as (id, encoder frame) per item; `<EOU>` resets the prediction network, as at run time."""
    lengths = torch.tensor([len(mel) for mel in mels])
    padded = torch.zeros(len(mels), int(lengths.max()), mels[0].shape[1])
    for row, mel in enumerate(mels):
        padded[row, : len(mel)] = torch.from_numpy(mel)
    encoded, frames = network.encoder(padded, lengths)
    encoder_side = network.joint.enc(encoded)
    return [_greedy_row(network, encoder_side[row, : int(frames[row])], eou) for row in range(len(mels))]


def _greedy_row(network: ParakeetNetwork, encoder_side: Tensor, eou: int) -> list[tuple[int, int]]:
    blank = network.config.blank
    start, start_state = network.decoder(torch.tensor([[blank]]))
    prediction, state = network.joint.pred(start[0, 0]), start_state
    tokens: list[tuple[int, int]] = []
    frame = emitted = 0
    while frame < len(encoder_side):
        # All frames up to the next emission share one prediction: find it in one product.
        best = network.joint.combine(encoder_side[frame:], prediction).argmax(-1)
        if emitted >= _MAX_SYMBOLS:
            best[0] = blank
        hits = (best != blank).nonzero()
        if len(hits) == 0:
            break
        ahead = int(hits[0])
        emitted = emitted + 1 if ahead == 0 else 1
        frame += ahead
        token = int(best[ahead])
        tokens.append((token, frame))
        if token == eou:
            prediction, state = network.joint.pred(start[0, 0]), start_state
            frame, emitted = frame + 1, 0
        else:
            output, state = network.decoder(torch.tensor([[token]]), state)
            prediction = network.joint.pred(output[0, 0])
    return tokens


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(hypothesis) + 1))
    for i, expected in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, heard in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (expected != heard))
    return row[-1]


def evaluate(
    network: ParakeetNetwork, tokenizer: Tokenizer, recordings: Sequence[Recording], rows: int = 25
) -> dict[str, dict[str, float | int]]:
    """Figures per group, per kind (`kind/*`) and per recording group given in `Recording.group`."""
    tallies: dict[str, Tally] = defaultdict(lambda: Tally(delays=[]))
    silence = np.zeros(int(TRAILING_SILENCE_S * SAMPLE_RATE), np.float32)
    order = sorted(recordings, key=lambda r: len(r.samples))
    for first in range(0, len(order), rows):
        group = order[first : first + rows]
        mels = [log_mel(np.concatenate([r.samples, silence])) for r in group]
        for recording, tokens in zip(group, decode(network, mels, tokenizer.eou), strict=True):
            for name in (recording.group, recording.group.split("/")[0] + "/*"):
                _count(tallies[name], recording, tokens, tokenizer)
    return {name: tallies[name].summary() for name in sorted(tallies)}


def _count(tally: Tally, recording: Recording, tokens: list[tuple[int, int]], tokenizer: Tokenizer) -> None:
    reference = recording.text.split()
    hypothesis = tokenizer.decode([token for token, _ in tokens]).split()
    tally.recordings += 1
    tally.words += len(reference)
    tally.errors += word_errors(reference, hypothesis)
    loud = np.nonzero(np.abs(recording.samples) > 0.02 * np.abs(recording.samples).max())[0]
    speech_end = float(loud[-1]) / SAMPLE_RATE
    ends = [frame for token, frame in tokens if token == tokenizer.eou]
    last_word = max((frame for token, frame in tokens if token != tokenizer.eou), default=0)
    final = [frame for frame in ends if frame >= last_word]
    if not final:
        tally.ends_missing += 1
    elif tally.delays is not None:
        tally.delays.append((final[0] + 1) * FRAME_SECONDS - speech_end)
    if any(frame * FRAME_SECONDS < speech_end or frame < last_word for frame in ends):
        tally.ends_early += 1


def false_words(
    network: ParakeetNetwork, tokenizer: Tokenizer, noises: Mapping[str, Sequence[Samples]]
) -> dict[str, dict[str, float]]:
    """Words and ends of utterance heard where there is no speech, and the minutes listened to, by kind of noise."""
    found: dict[str, dict[str, float]] = {}
    for name, pieces in noises.items():
        decoded = decode(network, [log_mel(piece) for piece in pieces], tokenizer.eou)
        ends = sum(token == tokenizer.eou for tokens in decoded for token, _ in tokens)
        words = sum(len(tokenizer.decode([token for token, _ in tokens]).split()) for tokens in decoded)
        minutes = sum(len(piece) for piece in pieces) / SAMPLE_RATE / 60
        found[name] = {"minutes": round(minutes, 1), "words": words, "eou": ends}
    return found


def noise_recordings(seed: int, pieces: int = 4, seconds: float = 15.0) -> dict[str, list[Samples]]:
    """Some of every kind of noise, at levels from very quiet to loud, and digital silence with an offset or none."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    count = int(seconds * SAMPLE_RATE)
    found = {
        name: [
            np.clip(unit(make(count, rng, noise)) * 10 ** rng.uniform(-3, -0.8), -1, 1).astype(np.float32)
            for _ in range(pieces)
        ]
        for name, (make, _) in MAKERS.items()
    }
    found["silence"] = [np.full(count, level, np.float32) for level in (0.0, 0.001, 0.05)]
    return found
