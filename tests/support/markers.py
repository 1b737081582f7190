"""A model that hears marks: a word for each burst of noise, an end of utterance after silence. Its truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.events import Final, Word
from parakeet_live.session.session import Session
from parakeet_models.mel import Float32
from support.driving import SessionDriver
from support.scripted import EOU, MANIFEST, ONE, VOCABULARY
from support.sounds import RATE, white_noise

MARK_MS = 80
LOUD = -6.0
"""Mean log-mel of a frame from which it belongs to a mark."""
QUIET_FRAMES = 5
"""Encoder frames of silence after which the model ends the utterance."""


def with_marks(seconds: float, marks: Sequence[float]) -> Float32:
    """Silence with a mark at each of these seconds."""
    audio = np.zeros(round(seconds * RATE), np.float32)
    burst = white_noise(MARK_MS / 1000, -10)
    for mark in marks:
        start = round(mark * RATE)
        audio[start : start + len(burst)] = burst[: len(audio) - start]
    return audio


class MarkStream(SessionDriver):
    """A session with that model, in steps of up to ``largest`` encoder frames."""

    def __init__(self, endpointing: EndpointingConfig = DEFAULT, largest: int = 16) -> None:
        super().__init__(Session(MANIFEST, VOCABULARY, endpointing), MANIFEST.step_sizes, largest)
        self._quiet: int | None = None
        """Silent frames since a mark, None after an end of utterance."""

    def push(self, audio: Float32, piece: int = RATE) -> None:
        for start in range(0, len(audio), piece):
            self.feed(audio[start : start + piece])

    @property
    def words(self) -> list[Word]:
        """All words of all finals."""
        return [word for event in self.events if isinstance(event, Final) for word in event.words]

    def hear(self, step: StepInput) -> list[Emission]:
        if step.restart:
            self._quiet = None
        emissions = []
        for frame in range(step.frames):
            mel = step.mel[1 + 8 * frame : 9 + 8 * frame]
            if step.begin and frame == 0:
                mel = mel[-1:]
            if mel.mean(1).max() > LOUD:
                if self._quiet != 0:
                    emissions.append(Emission(ONE, frame, 0.9))
                self._quiet = 0
            elif self._quiet is not None:
                self._quiet += 1
                if self._quiet == QUIET_FRAMES:
                    emissions.append(Emission(EOU, frame, 0.9))
                    self._quiet = None
        return emissions
