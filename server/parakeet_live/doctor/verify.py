"""Does the network compute the same on every processor of this computer as its reference?

The demo recording goes through one session for each trial; what the decoder emits is compared token by token.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from parakeet_live.audio.files import read_blocks
from parakeet_live.demo import RECORDING
from parakeet_live.engine.backend import Backend, EngineError
from parakeet_live.engine.backends import open_backend, runtime_of
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_live.session.events import Final
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts import AnyBundle
from parakeet_models.packages import ComputeUnits

COMPUTE_UNITS = (
    ComputeUnits.CPU_ONLY,
    ComputeUnits.CPU_AND_GPU,
    ComputeUnits.CPU_AND_NE,
    ComputeUnits.ALL,
)
"""Core ML's choices for the encoder, the reference first."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to run a model: a name for the report, how to load it, and the largest step in encoder frames."""

    name: str
    bundle: AnyBundle
    open: Callable[[], Backend]
    step_frames: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave; ``error`` says why it gave nothing."""

    name: str
    error: str = ""
    load_seconds: float = 0.0
    step_ms: tuple[float, float] = (0.0, 0.0)
    """Median and 95th percentile of the time of a step."""
    real_time_factor: float = 0.0
    tokens: tuple[tuple[int, int], ...] = ()
    """Id and encoder frame of everything the decoder emitted."""
    text: str = ""

    def agreement(self, reference: Outcome) -> float:
        """Similarity of the token sequences, 1 if they are equal."""
        ids, expected = [token for token, _ in self.tokens], [token for token, _ in reference.tokens]
        return difflib.SequenceMatcher(None, expected, ids, autojunk=False).ratio()

    def largest_shift(self, reference: Outcome) -> int | None:
        """Encoder frames between the same tokens of both, at most; None if the tokens differ."""
        if [token for token, _ in self.tokens] != [token for token, _ in reference.tokens]:
            return None
        pairs = zip(self.tokens, reference.tokens, strict=True)
        return max((abs(ours[1] - theirs[1]) for ours, theirs in pairs), default=0)


def trials(bundle: AnyBundle) -> list[Trial]:
    """Every way to run this model here; the first is the reference of the others."""
    sizes = bundle.manifest.step_sizes
    if runtime_of(bundle) != "coreml":
        return [
            Trial(f"ONNX Runtime, steps of {size} frames", bundle, partial(open_backend, bundle, 1), size)
            for size in dict.fromkeys((sizes[0], sizes[-1]))
        ]
    return [
        Trial(units, bundle, partial(open_backend, bundle, 1, coreml=CoremlOptions(encoder=units)), sizes[0])
        for units in COMPUTE_UNITS
    ]


def run_trial(trial: Trial) -> Outcome:
    """Load the model and stream the demo recording through it."""
    started = time.perf_counter()
    try:
        backend = trial.open()
    except EngineError as error:
        return Outcome(trial.name, error=str(error))
    loaded = time.perf_counter() - started
    try:
        return _stream(trial, backend, loaded)
    except EngineError as error:
        return Outcome(trial.name, error=str(error), load_seconds=loaded)
    finally:
        backend.shut_down()


def _stream(trial: Trial, backend: Backend, load_seconds: float) -> Outcome:
    manifest = trial.bundle.manifest
    session = Session(manifest, Vocabulary.load(trial.bundle))
    sizes = [size for size in manifest.step_sizes if size <= trial.step_frames]
    slot = backend.open()
    tokens: list[tuple[int, int]] = []
    texts: list[str] = []
    seconds: list[float] = []
    frame = 0

    def advance() -> None:
        nonlocal frame
        while ready := session.ready_frames:
            step = session.next_step(slot, max(size for size in sizes if size <= ready))
            started = time.perf_counter()
            emissions = backend.step([step])[0]
            seconds.append(time.perf_counter() - started)
            tokens.extend((emission.token, frame + emission.frame) for emission in emissions)
            frame += step.frames
            texts.extend(event.text for event in session.apply(emissions) if isinstance(event, Final))

    for block in read_blocks(RECORDING):
        session.push(block)
        advance()
    session.end()
    advance()
    backend.close(slot)
    audio_seconds = frame * SUBSAMPLING_FACTOR * manifest.mel.hop_length / manifest.mel.sample_rate
    median, high = np.percentile(seconds, [50, 95])
    return Outcome(
        trial.name,
        load_seconds=load_seconds,
        step_ms=(1000 * float(median), 1000 * float(high)),
        real_time_factor=sum(seconds) / audio_seconds,
        tokens=tuple(tokens),
        text=" / ".join(texts),
    )
