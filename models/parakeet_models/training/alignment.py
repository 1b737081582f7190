"""When each sound of a clip is heard: forced alignment with PocketSphinx, cached beside the clips.

The sounds (`sounds`) were never learned well from the guess that all sounds of a word are equally long. PocketSphinx
brings an acoustic model of its own to align with; nothing else of it is used.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pocketsphinx import Decoder, get_model_path

from .clips import SAMPLE_RATE, Clip, Samples, read_shard
from .sounds import SOUNDS, Sound

log = logging.getLogger(__name__)

PRONUNCIATIONS = {
    "backtick": "B AE K T IH K", "caret": "K EH R AH T", "dont": "D OW N T", "haha": "HH AA HH AA",
    "postcode": "P OW S T K OW D", "semicolon": "S EH M IY K OW L AH N", "thats": "DH AE T S",
    "unmute": "AH N M Y UW T", "unmuted": "AH N M Y UW T AH D", "wi": "W AY", "xray": "EH K S R EY",
}  # fmt: skip
"""Of words that the dictionary of PocketSphinx lacks."""

_EDGE_S = 0.2
"""Silence around a clip: the aligner wants some."""
_FRAME_S = 0.01


class Aligner:
    """Finds the sounds of clips; each call stands for itself."""

    def __init__(self) -> None:
        self._decoder = _decoder()

    def align(self, samples: Samples, text: str) -> tuple[tuple[Sound, ...], ...]:
        """The sounds of each word of a clip, in seconds from its start; nothing if the text is not found in it."""
        quiet = np.zeros(int(_EDGE_S * SAMPLE_RATE), np.float32)
        padded = np.concatenate([quiet, samples, quiet])
        # Digital silence has no logarithm.
        padded = padded + np.random.default_rng(0).normal(0, 3e-4, len(padded))
        pcm = (np.clip(padded, -1, 1) * 20_000).astype("<i2").tobytes()
        seconds = len(samples) / SAMPLE_RATE
        return tuple(
            tuple(
                (SOUNDS.index(name), _inside(start, seconds), _inside(start + count, seconds))
                for name, start, count in word
            )
            for word in _search(self._decoder, pcm, text)
        )


def _inside(frame: int, seconds: float) -> float:
    return round(min(max(frame * _FRAME_S - _EDGE_S, 0.0), seconds), 3)


def _decoder() -> Decoder:
    with tempfile.NamedTemporaryFile("w", suffix=".dict") as file:
        file.write(Path(get_model_path("en-us/cmudict-en-us.dict")).read_text())
        file.writelines(f"{word} {sounds}\n" for word, sounds in PRONUNCIATIONS.items())
        file.flush()
        return Decoder(dict=file.name, lm=None, loglevel="FATAL")


def _search(decoder: Decoder, pcm: bytes, text: str) -> list[list[tuple[str, int, int]]]:
    """Name, first frame and number of frames of each sound of each word; nothing if the search finds no way."""
    try:
        decoder.set_align_text(text)
        for second in (False, True):
            if second:  # the first pass finds the words, the second one their sounds
                decoder.set_alignment()
            decoder.start_utt()
            decoder.process_raw(pcm, full_utt=True)
            decoder.end_utt()
            if not second and decoder.hyp() is None:  # to ask after the second pass crashes
                return []
        words = [
            [(sound.name, sound.start, sound.duration) for sound in word]
            for word in decoder.get_alignment()
            if word.name[0] not in "<[+"
        ]
    except RuntimeError:
        return []
    return words if len(words) == len(text.split()) else []


def align_shards(folder: Path, worker: int, workers: int) -> None:
    """Align the clips of one worker's share of the shards under `folder` that are not aligned yet."""
    aligned = AlignedClips()
    mine = sorted(folder.glob("*/*.json"))[worker::workers]
    paths = [path for path in mine if not path.with_suffix(".sounds").exists()]
    for number, path in enumerate(paths, 1):
        aligned.shard(path)
        if number % 20 == 0:
            log.info("aligned: %d of %d shards", number, len(paths))


class AlignedClips:
    """Clips with their sounds; what was aligned once is read from `….sounds` beside the shards."""

    def __init__(self) -> None:
        self._aligner: Aligner | None = None

    def shard(self, path: Path) -> list[Clip]:
        """The clips of a shard, `path` being its JSON file."""
        return self.clips(read_shard(path), path.with_suffix(".sounds"))

    def clips(self, clips: Sequence[Clip], path: Path) -> list[Clip]:
        """The clips with their sounds, those from the file `path` if it is there; else it is written."""
        if not path.exists():
            self._aligner = self._aligner or Aligner()
            found = [self._aligner.align(clip.samples, clip.text) for clip in clips]
            unfinished = path.with_name(f"{path.name}.{os.getpid()}")
            unfinished.write_text(json.dumps(found))
            os.replace(unfinished, path)
        return [
            replace(clip, sounds=tuple(tuple((n, a, b) for n, a, b in word) for word in words or ()))
            for clip, words in zip(clips, json.loads(path.read_text()), strict=True)
        ]
