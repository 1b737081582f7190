"""Streams every clip through the real session and keeps what it said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parakeet_live.audio.files import RATE, read_blocks
from parakeet_live.engine.offline import Transcriber
from parakeet_live.engine.together import BLOCK_MS, Heard
from parakeet_live.evaluation.endpoints import EndOfUtterance, judge_end
from parakeet_live.evaluation.manifest import Clip
from parakeet_live.evaluation.normalise import normalise
from parakeet_live.evaluation.speech import speech_end_ms
from parakeet_live.evaluation.words import WordCounts, compare
from parakeet_live.session.events import Final

BLOCK = RATE * BLOCK_MS // 1000
"""Samples handed over at a time."""


@dataclass(frozen=True, slots=True)
class Padding:
    """What follows every clip, so that its end can be found."""

    milliseconds: int = 2000
    noise_dbfs: float | None = None
    """Level of white noise in dB of full scale; ``None`` is digital silence."""

    def samples(self) -> NDArray[np.float32]:
        """float32[n] at 16 kHz, the same at every call."""
        count = self.milliseconds * RATE // 1000
        if self.noise_dbfs is None:
            return np.zeros(count, dtype=np.float32)
        noise = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
        return noise * np.float32(10 ** (self.noise_dbfs / 20))


@dataclass(frozen=True, slots=True)
class ClipResult:
    """One clip's outcome. Texts are normalised; times are milliseconds of audio time."""

    clip: Clip
    reference: str
    transcript: str
    words: WordCounts
    end: EndOfUtterance
    heard: tuple[Heard, ...]
    """Everything the session reported."""
    clip_ms: int
    speech_end_ms: int
    audio_ms: int
    """Audio streamed: the clip and the padding."""
    wall_seconds: float
    cpu_seconds: float
    """Time spent on recognition, all threads of the process together."""


def run_clip(transcriber: Transcriber, clip: Clip, padding: Padding) -> ClipResult:
    """Streams one clip with its padding and compares the outcome with the reference."""
    speech = np.concatenate([np.empty(0, dtype=np.float32), *read_blocks(clip.audio)])
    audio = np.concatenate([speech, padding.samples()])
    wall, cpu = time.perf_counter(), time.process_time()
    heard = tuple(_events(transcriber, audio))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu

    reference = normalise(clip.text, clip.kind)
    transcript = normalise(
        " ".join(item.event.text for item in heard if isinstance(item.event, Final)), clip.kind
    )
    clip_ms = len(speech) * 1000 // RATE
    speech_ms = speech_end_ms(speech, RATE)
    return ClipResult(
        clip=clip,
        reference=reference,
        transcript=transcript,
        words=compare(reference, transcript),
        end=judge_end(heard, clip_end_ms=clip_ms, speech_end_ms=speech_ms),
        heard=heard,
        clip_ms=clip_ms,
        speech_end_ms=speech_ms,
        audio_ms=len(audio) * 1000 // RATE,
        wall_seconds=wall,
        cpu_seconds=cpu,
    )


def _events(transcriber: Transcriber, audio: NDArray[np.float32]) -> Iterator[Heard]:
    """Every event, with the audio that had been handed over when it came. ``audio``: float32[n] at 16 kHz."""
    position = 0
    ended = False

    def blocks() -> Iterator[NDArray[np.float32]]:
        nonlocal position, ended
        while position < len(audio):
            start, position = position, min(position + BLOCK, len(audio))
            yield audio[start:position]
        ended = True

    for event in transcriber.stream(blocks()):
        yield Heard(event, heard_ms=position * 1000 // RATE, live=not ended)
