"""A session driven by a script instead of a network: tokens on given encoder frames, voices in given samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.events import Final, Partial, Reason
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import CONTEXT, VoiceModel
from parakeet_models.bundle import BundleFile, Geometry, Manifest, TokenIds
from parakeet_models.mel import Float32, MelParameters
from support.driving import SessionDriver

PIECES = ("<unk>", "▁one", "▁two", "▁th", "ree", "▁", "v", "<0xC3>", "<0xA9>", "<EOU>", "<EOB>")
UNK, ONE, TWO, TH, REE, MARK, LETTER_V, BYTE1, BYTE2, EOU, EOB = range(len(PIECES))
VOCABULARY = Vocabulary(PIECES, eou=EOU, eob=EOB, unknown=UNK)
MANIFEST = Manifest(
    name="scripted",
    languages=("en",),
    licence="Apache-2.0",
    source="test",
    geometry=Geometry(
        mel_bins=8,
        d_model=8,
        layers=1,
        heads=1,
        subsampling_channels=1,
        prediction_hidden=1,
        joint_hidden=1,
        vocabulary=len(PIECES),
    ),
    mel=MelParameters(bins=8),
    tokens=TokenIds(eou=EOU, eob=EOB, blank=len(PIECES)),
    step_sizes=(2, 4, 8, 16),
    files=tuple(
        BundleFile(role=role, path=role, bytes=0, sha256="0" * 64)
        for role in ("encoder", "prediction", "joint", "tokenizer")
    ),
)
AT_ONCE = replace(DEFAULT, eou_silence_ms=0, eou_hold_ms=0)
"""Commits at the end token, as where no debounce is wanted."""
PATIENT = replace(DEFAULT, no_audio_ms=600_000)
"""For streams that are fed when the test gets round to it: the only rule that looks at the clock is put off."""

Script = dict[int, Sequence[int]]
"""Encoder frame of the whole stream -> tokens emitted on it."""


class LoudIsVoice:
    """A voice detector for scripts: a chunk with a sample over 0.5 is a voice."""

    def __call__(self, samples: Float32, state: Float32) -> tuple[float, Float32]:
        return float(np.abs(samples[CONTEXT:]).max() > 0.5), state


class Driver(SessionDriver):
    """Runs a session against a script, counting frames as an engine would."""

    def __init__(
        self,
        script: Script,
        largest: int = 2,
        endpointing: EndpointingConfig = DEFAULT,
        voice: VoiceModel | None = None,
    ) -> None:
        super().__init__(Session(MANIFEST, VOCABULARY, endpointing, voice), MANIFEST.step_sizes, largest)
        self.script = script
        self.frame = 0
        self.restarts: list[int] = []

    def push(self, milliseconds: int, level: float = 0.0) -> None:
        self.feed(np.full(milliseconds * 16, level, np.float32))

    def hear(self, step: StepInput) -> list[Emission]:
        if step.restart:
            self.restarts.append(self.frame)
        emissions = [
            Emission(token, frame, 0.5)
            for frame in range(step.frames)
            for token in self.script.get(self.frame + frame, ())
        ]
        self.frame += step.frames
        return emissions

    def finals(self) -> list[tuple[int, str, Reason]]:
        return [(e.utterance, e.text, e.reason) for e in self.events if isinstance(e, Final)]

    def texts(self) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Partial)]
