"""What the streams say: recordings cut and joined into tracks, encoded before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from websockets.frames import Frame, Opcode

from parakeet_live.audio.files import RATE, AudioFileError, read_blocks

Int16 = NDArray[np.int16]

PAUSE_SECONDS = (0.4, 1.6)
"""Shortest and longest pause between two recordings: long enough for the model to end the utterance."""
PAUSE_LEVEL = 8
"""Largest sample of the noise in a pause, of 32767: a quiet line, not a dead one."""
END = Frame(Opcode.TEXT, b'{"type":"end"}').serialize(mask=True)


@dataclass(frozen=True, slots=True)
class Track:
    """One speaker's audio as WebSocket frames of ``frame_ms``, masked and ready for the socket.

    The mask is drawn once and used for every stream that plays the track: it protects proxies from hostile pages,
    not a server under test, and masking again for every stream would load the machine that is measured.
    """

    frames: tuple[bytes, ...]
    frame_ms: int


def read_recordings(paths: Sequence[Path]) -> list[Int16]:
    """int16[n] at 16 kHz of every file. Raises AudioFileError."""
    recordings = []
    for path in paths:
        blocks = list(read_blocks(path))
        if not blocks:
            raise AudioFileError(f"{path} holds no audio")
        samples = np.concatenate(blocks)
        recordings.append(np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16))
    return recordings


def make_tracks(
    recordings: Sequence[Int16], *, count: int, seconds: float, frame_ms: int, seed: int
) -> list[Track]:
    """``count`` different tracks of at least ``seconds``, in whole frames; the same for the same arguments."""
    frame_samples = RATE * frame_ms // 1000
    frames = int(np.ceil(seconds * RATE / frame_samples))
    return [
        encode(speak(recordings, frames * frame_samples, np.random.default_rng([seed, number])), frame_ms)
        for number in range(count)
    ]


def encode(samples: Int16, frame_ms: int) -> Track:
    """The track of int16[n] samples, n a multiple of the frame."""
    pieces = samples.reshape(-1, RATE * frame_ms // 1000)
    frames = (Frame(Opcode.BINARY, piece.tobytes()).serialize(mask=True) for piece in pieces)
    return Track(tuple(frames), frame_ms)


def speak(recordings: Sequence[Int16], samples: int, rng: np.random.Generator) -> Int16:
    """int16[samples]: recordings in random order with pauses between them, entered at a random place."""
    parts: list[Int16] = []
    recording = recordings[int(rng.integers(len(recordings)))]
    parts.append(recording[rng.integers(len(recording)) :])
    length = len(parts[0])
    while length < samples:
        pause = int(rng.uniform(*PAUSE_SECONDS) * RATE)
        parts.append(rng.integers(-PAUSE_LEVEL, PAUSE_LEVEL, pause, dtype=np.int16, endpoint=True))
        parts.append(recordings[int(rng.integers(len(recordings)))])
        length += len(parts[-2]) + len(parts[-1])
    return np.concatenate(parts)[:samples]
