"""Audio files as the recogniser wants them: 16 kHz mono float32, read block by block.

Any format libsndfile reads (WAV, FLAC, Ogg, Opus, MP3, AIFF, AU ...), any sample rate, any channel count.
Memory stays the same however long the file is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

RATE = 16_000
"""Samples per second the recogniser works with."""
BLOCK_SECONDS = 1.0
"""Audio read at a time."""


class AudioFileError(Exception):
    """The file cannot be read as audio; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What a file holds."""

    seconds: float
    rate: int
    channels: int


def describe(path: Path) -> AudioInfo:
    """Length, sample rate and channels from the file's header."""
    with _open(path) as file:
        return AudioInfo(file.frames / file.samplerate, file.samplerate, file.channels)


def read_blocks(path: Path) -> Iterator[NDArray[np.float32]]:
    """Blocks of float32[n] at 16 kHz, channels averaged; all blocks joined are the whole file."""
    with _open(path) as file:
        resampler = (
            soxr.ResampleStream(file.samplerate, RATE, 1, dtype="float32")
            if file.samplerate != RATE
            else None
        )
        for mono in _mono_blocks(file, path):
            block = resampler.resample_chunk(mono) if resampler else mono
            if len(block):
                yield block
        if resampler:
            tail = resampler.resample_chunk(np.empty(0, dtype=np.float32), last=True)
            if len(tail):
                yield tail


def _mono_blocks(file: soundfile.SoundFile, path: Path) -> Iterator[NDArray[np.float32]]:
    frames = max(1, int(file.samplerate * BLOCK_SECONDS))
    while True:
        try:
            block: NDArray[np.float32] = file.read(frames, dtype="float32", always_2d=True)
        except soundfile.SoundFileError as error:
            raise AudioFileError(f"{path} is damaged: {_reason(error)}") from error
        if len(block) == 0:
            return
        mono = block[:, 0] if block.shape[1] == 1 else block.mean(axis=1, dtype=np.float32)
        # Float files may hold NaN or infinity, which would stay in the recogniser's memory for ever.
        yield np.nan_to_num(np.ascontiguousarray(mono), nan=0.0, posinf=1.0, neginf=-1.0)


def _open(path: Path) -> soundfile.SoundFile:
    if not path.exists():
        raise AudioFileError(f"no such file: {path}")
    if path.is_dir():
        raise AudioFileError(f"{path} is a directory: name the audio files in it")
    if path.is_file() and path.stat().st_size == 0:
        raise AudioFileError(f"{path} is empty")
    try:
        return soundfile.SoundFile(path)
    except (soundfile.SoundFileError, TypeError) as error:
        raise AudioFileError(
            f"cannot read {path}: {_reason(error)}. WAV, FLAC, Ogg, Opus, MP3 and AIFF work; "
            "convert anything else first, for example: ffmpeg -i INPUT output.wav"
        ) from error


def _reason(error: Exception) -> str:
    """libsndfile's own words, without the prefix that repeats the path."""
    return str(getattr(error, "error_string", error)).rstrip(".")
