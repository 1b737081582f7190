"""What a backend makes of a whole stream, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parakeet_live.audio.files import read_blocks
from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.engine.nemo.encoder import SILENCE
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.layouts import AnyBundle
from parakeet_models.network import EncoderState, NetworkConfig, ParakeetNetwork, StreamingEncoder
from parakeet_models.network.greedy import greedy_decode

AUDIO = Path(__file__).parents[1] / "data" / "audio"
RECORDINGS = sorted(AUDIO.glob("*.flac"))

RunStep = Callable[[StepInput], list[Emission]]


@dataclass(frozen=True, slots=True)
class Heard:
    """The tokens of a recording, with the encoder frame of the stream and the probability of each."""

    tokens: list[tuple[int, int]]
    probabilities: list[float]


def samples_of(path: Path) -> NDArray[np.float32]:
    """float32[n] at 16 kHz."""
    return np.concatenate(list(read_blocks(path)))


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
    """Every recording by name, a stream each; ``run`` is told whether a step begins one."""

    def stream(path: Path) -> Heard:
        fresh = True

        def one(step: StepInput) -> list[Emission]:
            nonlocal fresh
            began, fresh = fresh, False
            return run(step, began)

        return hear(bundle, one, samples_of(path))

    return {path.name: stream(path) for path in RECORDINGS}


def encoded_as_published(own: StreamingEncoder, config: NetworkConfig, steps: Sequence[StepInput]) -> Tensor:
    """Encoder frames [T', n] of a stream that begins as those of the published layouts do: 160 ms of silence go before
    it, and no frame attends to them. Our own streams begin with nothing at all, which moves a word now and then."""
    mel = torch.from_numpy(np.concatenate([step.mel[1:] for step in steps]))[None]
    # The silence, and the eight frames of padding that a stream's first step has, of which the last seven are here.
    mel = torch.cat([torch.full((1, 9, mel.shape[2]), float(SILENCE)), mel], 1)
    mel[:, :16] = float(SILENCE)
    begin, zero, end = torch.tensor([8]), torch.tensor([0]), torch.tensor([17])
    state = EncoderState.initial(config, 1)
    own.step(torch.nn.functional.pad(mel[:, :9], (0, 0, 8, 0)), begin, end, state)
    fresh = EncoderState.initial(config, 1)
    fresh.stage1, fresh.stage2 = state.stage1, state.stage2
    starts = range(8, mel.shape[1] - 16, 16)
    return torch.cat([own.step(mel[:, start : start + 17], zero, end, fresh) for start in starts], 1)[0]


def network_hears_all(network: ParakeetNetwork, bundle: AnyBundle) -> dict[str, Heard]:
    """What the network in PyTorch makes of every recording when its streams begin as those of the published layouts."""
    own = StreamingEncoder(network)
    own.projection = torch.nn.Identity()  # `greedy_decode` has the joint network do that
    ends = {token for token in (bundle.manifest.tokens.eou, bundle.manifest.tokens.eob) if token is not None}
    heard = {}
    for path in RECORDINGS:
        encoded = encoded_as_published(own, network.config, list(steps_of(bundle, samples_of(path))))
        tokens = greedy_decode(network, encoded, reset_on=frozenset(ends))
        heard[path.name] = Heard([(t.frame, t.token) for t in tokens], [t.probability for t in tokens])
    return heard


def assert_same(found: dict[str, Heard], expected: dict[str, Heard], *, probability: float) -> None:
    """The same tokens on the same frames, and probabilities within so much."""
    for name, heard in expected.items():
        assert heard.tokens, name
        assert found[name].tokens == heard.tokens, name
        np.testing.assert_allclose(found[name].probabilities, heard.probabilities, atol=probability)
