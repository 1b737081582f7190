"""What the tests of Core ML packages share: a stream driven through packages and through PyTorch at the same time."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from parakeet_models.bundle import TokenIds
from parakeet_models.coreml import cache_shapes
from parakeet_models.frames import valid_frames
from parakeet_models.mel import MelParameters
from parakeet_models.network import EncoderState, NetworkConfig, ParakeetNetwork, StreamingEncoder

Float32 = NDArray[np.float32]
MEL = MelParameters(bins=24)
CONFIG = NetworkConfig(
    mel_bins=MEL.bins,
    d_model=48,
    layers=2,
    heads=3,
    subsampling_channels=6,
    prediction_hidden=32,
    joint_hidden=40,
    vocabulary=60,
)
TOKENS = TokenIds(eou=1, eob=2, blank=CONFIG.vocabulary)


def require_coremltools() -> None:
    """Skip the module where coremltools has no wheel. Elsewhere a missing coremltools is an error of the set-up."""
    has_wheel = sys.platform == "darwin" or (sys.platform == "linux" and platform.machine() == "x86_64")
    if not has_wheel or sys.version_info >= (3, 14):
        pytest.skip(
            f"coremltools has no wheel for Python {platform.python_version()} on {platform.platform()}",
            allow_module_level=True,
        )


def make_network(config: NetworkConfig = CONFIG, seed: int = 0) -> ParakeetNetwork:
    """Random weights, with biases and normalisations that are not neutral."""
    torch.manual_seed(seed)
    network = ParakeetNetwork(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.randn_like(parameter) * 0.08
        network.decoder.embed.weight[config.blank] = 0.0
    return network


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a stream: mel float32[8n + 1, bins], and what PyTorch makes of it."""

    mel: Float32
    begin: int
    end: int
    expected: Float32
    """[valid frames, joint_hidden]."""

    @property
    def frames(self) -> int:
        return (len(self.mel) - 1) // 8


def stream(network: ParakeetNetwork, sizes: Sequence[int], last: int, seed: int = 0) -> Iterator[Step]:
    """A stream in steps of ``sizes`` encoder frames: a real first step, and a last one of ``last`` mel frames."""
    generator = torch.Generator().manual_seed(seed)
    encoder = StreamingEncoder(network)
    state = EncoderState.initial(network.config, 1)
    for index, size in enumerate(sizes):
        mel = torch.randn(1, 8 * size + 1, network.config.mel_bins, generator=generator) * 3 - 8
        begin = 8 if index == 0 else 0
        end = torch.tensor([8 * size + 1 if index < len(sizes) - 1 else last + 1])
        frames = encoder.step(mel, torch.tensor([begin]), end, state)
        expected = frames[0, : int(valid_frames(end))].numpy()
        yield Step(mel[0].numpy(), begin, int(end), expected)


class PackageStream:
    """One stream through encoder packages, by step size; what a backend will do, without the decoder."""

    def __init__(self, models: dict[int, object], config: NetworkConfig) -> None:
        self.models = models
        first = next(iter(models.values()))
        self.left = config.attention_left
        self.valid = 0
        self.state = first.make_state() if first.states else None  # type: ignore[attr-defined]
        self.caches = {} if self.state else {k: np.zeros(s) for k, s in cache_shapes(config).items()}

    def step(self, step: Step) -> Float32:
        """[valid frames, joint_hidden], in fp32."""
        counters = {"begin": step.begin, "end": step.end, "valid": self.valid}
        inputs = {"mel": step.mel[None, None], **{k: np.full((1, 1, 1, 1), v) for k, v in counters.items()}}
        outputs = self.models[step.frames].predict({**inputs, **self.caches}, self.state)  # type: ignore[attr-defined]
        self.caches = {name: outputs[f"new_{name}"] for name in self.caches}
        self.valid = min(self.valid + step.frames, self.left)
        return outputs["encoded"][0, :, 0].T[: len(step.expected)].astype(np.float32)


@dataclass(frozen=True, slots=True)
class Difference:
    """How far results are from what they should be."""

    largest: float
    snr: float
    """Signal to noise ratio in dB."""


def compare(pairs: Sequence[tuple[Float32, Float32]]) -> Difference:
    """Pairs of (actual, expected)."""
    signal = sum(float(np.square(expected).sum()) for _, expected in pairs)
    noise = sum(float(np.square(actual - expected).sum()) for actual, expected in pairs)
    largest = max(float(np.abs(actual - expected).max()) for actual, expected in pairs)
    return Difference(largest, 10 * float(np.log10(signal / max(noise, 1e-30))))
