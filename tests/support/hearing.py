"""What a backend makes of a whole stream, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parakeet_live.audio.files import read_blocks
from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.layouts import AnyBundle

AUDIO = Path(__file__).parents[1] / "data" / "audio"
RECORDINGS = sorted(AUDIO.glob("*.flac"))
LEAD_S = 6.4
"""Silence before a recording. Layouts differ in what a stream begins with (silence, or nothing at all), and a word can
come a frame earlier or later for that; behind the 70 frames that a layer looks back on, little of it is left."""

RunStep = Callable[[StepInput], list[Emission]]


@dataclass(frozen=True, slots=True)
class Heard:
    """The tokens of a recording, with the encoder frame of the stream and the probability of each."""

    tokens: list[tuple[int, int]]
    probabilities: list[float]


def samples_of(path: Path) -> NDArray[np.float32]:
    """float32[n] at 16 kHz."""
    return np.concatenate(list(read_blocks(path)))


def after_silence(path: Path) -> NDArray[np.float32]:
    """The same with ``LEAD_S`` of silence before it."""
    return np.concatenate([np.zeros(int(LEAD_S * 16_000), np.float32), samples_of(path)])


def steps_of(bundle: AnyBundle, samples: NDArray[np.float32], slot: int = 0) -> Iterator[StepInput]:
    """The live steps of a whole stream, with the silence after its end."""
    session = Session(bundle.manifest, Vocabulary.load(bundle))
    session.push(samples)
    session.end()
    while session.ready_frames:
        yield session.next_step(slot, bundle.manifest.step_sizes[0])
        session.apply([])


def hear(bundle: AnyBundle, run: RunStep, samples: NDArray[np.float32], slot: int = 0) -> Heard:
    """``run`` is asked for one step after the other."""
    heard = Heard([], [])
    frames = 0
    for step in steps_of(bundle, samples, slot):
        for emission in run(step):
            heard.tokens.append((frames + emission.frame, emission.token))
            heard.probabilities.append(emission.probability)
        frames += step.frames
    return heard


def hear_all(bundle: AnyBundle, run: Callable[[StepInput, bool], list[Emission]]) -> dict[str, Heard]:
    """Every recording by name, after silence, a stream each; ``run`` is told whether a step begins one."""

    def stream(path: Path) -> Heard:
        fresh = True

        def one(step: StepInput) -> list[Emission]:
            nonlocal fresh
            began, fresh = fresh, False
            return run(step, began)

        return hear(bundle, one, after_silence(path))

    return {path.name: stream(path) for path in RECORDINGS}


def assert_same(found: dict[str, Heard], expected: dict[str, Heard], *, probability: float) -> None:
    """The same tokens on the same frames, and probabilities within so much."""
    for name, heard in expected.items():
        assert heard.tokens, name
        assert found[name].tokens == heard.tokens, name
        np.testing.assert_allclose(found[name].probabilities, heard.probabilities, atol=probability)
