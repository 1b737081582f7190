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
LARGEST_HEADER_BYTES = 4096
"""A file bigger than this that claims to hold no audio was never finished by its recorder."""


class AudioFileError(Exception):
    """The file cannot be read as audio; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What a file holds."""

    seconds: float
    rate: int
    channels: int


class _Sequential(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no type information
    """A file that is read once from start to end.

    soundfile seeks after every read of a seekable file. In MP3, where a frame may borrow bits from the frames
    before it, each seek garbles the sound that follows.
    """

    def seekable(self) -> bool:
        return False


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


def _mono_blocks(file: _Sequential, path: Path) -> Iterator[NDArray[np.float32]]:
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


def _open(path: Path) -> _Sequential:
    if not path.exists():
        raise AudioFileError(f"no such file: {path}")
    if path.is_dir():
        raise AudioFileError(f"{path} is a directory: name the audio files in it")
    if path.is_file() and path.stat().st_size == 0:
        raise AudioFileError(f"{path} is empty")
    try:
        file = _Sequential(path)
    except (soundfile.SoundFileError, TypeError) as error:
        raise AudioFileError(
            f"cannot read {path}: {_reason(error)}. WAV, FLAC, Ogg, Opus, MP3 and AIFF work; "
            "convert anything else first, for example: ffmpeg -i INPUT output.wav"
        ) from error
    if file.frames == 0 and path.stat().st_size > LARGEST_HEADER_BYTES:
        file.close()
        raise AudioFileError(
            f"the header of {path} says that it holds no audio, as after an interrupted recording; "
            "repair it, for example: ffmpeg -ignore_length 1 -i INPUT output.wav"
        )
    return file


def _reason(error: Exception) -> str:
    """libsndfile's own words, without the prefix that repeats the path."""
    words = str(getattr(error, "error_string", error))
    return words.removeprefix("Error :").strip().rstrip(".")
