"""Published layouts run as they are and say what our own bundle says: on look-alikes made of the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from parakeet_live.audio.files import read_blocks
from parakeet_live.engine.backend import Backend, StepInput
from parakeet_live.engine.backends import open_backend
from parakeet_live.engine.onnx import OnnxBackend
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import embedded_bundle
from parakeet_models.layouts import AnyBundle, load_model
from support.layouts.look_alikes import ONNX, LookAlikes

AUDIO = Path(__file__).parents[1] / "data" / "audio"
RECORDINGS = sorted(AUDIO.glob("*.flac"))


@dataclass(frozen=True)
class Heard:
    """What a backend made of a recording."""

    tokens: list[tuple[int, int]]
    """(encoder frame of the stream, token)."""
    probabilities: list[float]


def samples_of(path: Path) -> NDArray[np.float32]:
    return np.concatenate(list(read_blocks(path)))


def steps_of(bundle: AnyBundle, samples: NDArray[np.float32], slot: int) -> Iterator[StepInput]:
    """The steps of a whole stream, its flush at the end included."""
    session = Session(bundle.manifest, Vocabulary.load(bundle))
    session.push(samples)
    session.end()
    while session.ready_frames:
        yield session.next_step(slot, bundle.manifest.step_sizes[0])
        session.apply([])


def hear(bundle: AnyBundle, backend: Backend, samples: NDArray[np.float32]) -> Heard:
    slot = backend.open()
    tokens: list[tuple[int, int]] = []
    probabilities = []
    for number, step in enumerate(steps_of(bundle, samples, slot)):
        for emission in backend.step([step])[0]:
            tokens.append((number * step.frames + emission.frame, emission.token))
            probabilities.append(emission.probability)
    backend.close(slot)
    return Heard(tokens, probabilities)


@pytest.fixture(scope="module")
def expected() -> dict[Path, Heard]:
    bundle = embedded_bundle()
    backend = OnnxBackend(bundle, 1)
    return {path: hear(bundle, backend, samples_of(path)) for path in RECORDINGS}


@pytest.mark.parametrize("name", ONNX)
def test_the_same_tokens_on_the_same_frames(
    look_alikes: LookAlikes, expected: dict[Path, Heard], name: str
) -> None:
    bundle = load_model(look_alikes.directory(name))
    backend = open_backend(bundle, 1)
    for path in RECORDINGS:
        found = hear(bundle, backend, samples_of(path))
        assert found.tokens, path.name
        assert found.tokens == expected[path].tokens, path.name
        # The windows of a stream's first step begin in silence, where our own graph has nothing at all.
        np.testing.assert_allclose(found.probabilities, expected[path].probabilities, atol=0.15)
