"""Does a bundle compute what the network computes? Measured on every export and recorded in its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from parakeet_models.bundle import Parity, TokenIds, encoder_inputs, encoder_outputs
from parakeet_models.frames import SUBSAMPLING_FACTOR, valid_frames
from parakeet_models.mel import Float32, MelParameters, log_mel
from parakeet_models.network import (
    EncoderState,
    NetworkConfig,
    ParakeetNetwork,
    StreamingEncoder,
    greedy_decode,
)
from parakeet_models.network.greedy import MAX_SYMBOLS_PER_FRAME
from parakeet_models.network.streaming import MAX_STEP

PARITY_STEPS = 48
"""More than the 35 steps of two frames that fill the attention ring, so that it wraps."""
PARITY_ROWS = 3

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TestAudio:
    """What the bundle and PyTorch both decode: float32[n] at the model's rate, and what it is."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str
    samples: Float32


def measure_parity(
    network: ParakeetNetwork,
    directory: Path,
    mel: MelParameters,
    tokens: TokenIds,
    step_sizes: tuple[int, ...],
    audio: TestAudio,
) -> Parity:
    """Run the graphs in ``directory`` against ``network``."""
    graph = GraphEncoder(network.config, directory / "encoder.onnx")
    worst, relative = encoder_difference(network, graph, step_sizes)
    state = EncoderState.initial(network.config, 1)

    def step(mel: Tensor, begin: int, end: int) -> Tensor:
        return graph.step(mel[None], torch.tensor([begin]), torch.tensor([end]), state)[0]

    found = streamed_tokens(step, GraphDecoder(directory), network.config, mel, tokens, step_sizes[0], audio)
    count, agreement = token_agreement(network, mel, tokens, audio, found)
    return Parity(
        max_difference=worst,
        relative_difference=relative,
        steps=PARITY_STEPS,
        audio=audio.name,
        tokens=count,
        token_agreement=agreement,
    )


def token_agreement(
    network: ParakeetNetwork,
    mel: MelParameters,
    tokens: TokenIds,
    audio: TestAudio,
    found: list[tuple[int, int]],
) -> tuple[int, float]:
    """Tokens that PyTorch emits on ``audio``, offline, and the share of (frame, token) that ``found`` has as well."""
    features = torch.from_numpy(log_mel(audio.samples, mel))[None]
    with torch.inference_mode():
        encoded, _ = network.encoder(features, torch.tensor([features.shape[1]]))
    decoded = greedy_decode(network, encoded[0], reset_on=_ends(tokens))
    expected, actual = Counter((t.frame, t.token) for t in decoded), Counter(found)
    total = expected.total() + actual.total()
    return expected.total(), 2 * (expected & actual).total() / total if total else 1.0


def _session_options() -> ort.SessionOptions:
    """No spinning: beside PyTorch's threads it would only take the processor from the work itself."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


class GraphEncoder(StreamingEncoder):
    """The exported encoder behind the interface of the PyTorch one, which does the ring writes."""

    def __init__(self, config: NetworkConfig, graph: Path) -> None:
        nn.Module.__init__(self)  # the graph holds the weights
        self.config, self.max_step = config, MAX_STEP
        self.session = ort.InferenceSession(
            str(graph), _session_options(), providers=["CPUExecutionProvider"]
        )

    def forward(self, *inputs: Tensor | list[Tensor]) -> tuple[Tensor | list[Tensor], ...]:
        layers = self.config.layers
        flat = [t for value in inputs for t in (value if isinstance(value, list) else [value])]
        feed = dict(zip(encoder_inputs(layers), (t.numpy() for t in flat), strict=True))
        found = [torch.from_numpy(array) for array in self.session.run(encoder_outputs(layers), feed)]
        return (*found[:-layers], found[-layers:])


def encoder_difference(
    network: ParakeetNetwork, graph: GraphEncoder, step_sizes: tuple[int, ...], seed: int = 0
) -> tuple[float, float]:
    """Differences between the graph and the PyTorch streaming encoder when both get the same inputs.

    Three streams of different ages through PARITY_STEPS steps of mixed sizes. Returns the largest difference in
    any output, relative to the output's peak where that is above one (fp32 has a relative precision), and the root
    mean square difference of the encoded frames relative to how they vary over time.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = np.random.default_rng(seed).choice(step_sizes, PARITY_STEPS).tolist()
    config = network.config
    streaming = StreamingEncoder(network, MAX_STEP)
    state = EncoderState.initial(config, PARITY_ROWS)
    worst = 0.0
    errors, encoded = [], []
    for index, size in enumerate(sizes):
        mel_frames = SUBSAMPLING_FACTOR * size + 1
        mel = torch.randn(PARITY_ROWS, mel_frames, config.mel_bins, generator=generator) * 3 - 8
        # Row r begins at step r: until then it is on its first step again and again.
        begin = torch.tensor([SUBSAMPLING_FACTOR if index <= row else 0 for row in range(PARITY_ROWS)])
        end = torch.full((PARITY_ROWS,), mel_frames)
        found, _, stage2, _, conv = graph(
            mel, begin, end, state.position, state.valid, state.stage1, state.stage2,
            state.keys, state.values, state.conv,
        )  # fmt: skip
        expected = streaming.step(mel, begin, end, state)
        pairs = [(found, expected), (stage2, state.stage2), *zip(conv, state.conv, strict=True)]
        worst = max(worst, *(_difference(*pair) for pair in pairs))
        errors.append((found - expected).flatten(0, 1))
        encoded.append(expected.flatten(0, 1))
    frames = torch.cat(encoded)
    variation = (frames - frames.mean(0)).square().mean().sqrt()
    return worst, float(torch.cat(errors).square().mean().sqrt() / variation)


def _difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1.0))


class DecoderSteps(Protocol):
    """Prediction network and joint of a bundle, for one stream."""

    def predict(self, token: Array, h: Array, c: Array) -> Sequence[Array]:
        """token int64[1]; h, c [1, prediction_hidden] -> prediction [1, joint_hidden], new h, new c."""
        ...

    def best(self, encoded: Array, predicted: Array) -> Sequence[Array]:
        """encoded, predicted [1, joint_hidden] -> token [1], probability [1]."""
        ...


class GraphDecoder:
    """The exported graphs of prediction network and joint."""

    def __init__(self, directory: Path) -> None:
        self._prediction, self._joint = (
            ort.InferenceSession(
                str(directory / f"{name}.onnx"), _session_options(), providers=["CPUExecutionProvider"]
            )
            for name in ("prediction", "joint")
        )

    def predict(self, token: Array, h: Array, c: Array) -> Sequence[Array]:
        return self._prediction.run(None, {"token": token, "h": h, "c": c})

    def best(self, encoded: Array, predicted: Array) -> Sequence[Array]:
        return self._joint.run(None, {"encoder": encoded, "prediction": predicted})


def streamed_tokens(
    step: Callable[[Tensor, int, int], Tensor],
    decoder: DecoderSteps,
    config: NetworkConfig,
    mel: MelParameters,
    tokens: TokenIds,
    size: int,
    audio: TestAudio,
) -> list[tuple[int, int]]:
    """(frame, token) of every token that a bundle emits on ``audio`` in steps of ``size`` encoder frames.

    ``step`` runs one step of one stream: mel [8 * size + 1, bins], begin, end -> [size, joint_hidden].
    """
    features = torch.from_numpy(log_mel(audio.samples, mel))
    hop = SUBSAMPLING_FACTOR * size
    count = len(features) + SUBSAMPLING_FACTOR
    padded = torch.nn.functional.pad(features, (0, 0, SUBSAMPLING_FACTOR, hop + 1))
    encoded = []
    for start in range(0, count - 1, hop):
        end = min(hop + 1, count - start)
        frames = step(
            padded[start : start + hop + 1].contiguous(), SUBSAMPLING_FACTOR if start == 0 else 0, end
        )
        encoded.append(frames[: valid_frames(end)])
    return _decode(decoder, config, torch.cat(encoded).numpy(), _ends(tokens))


def _ends(tokens: TokenIds) -> frozenset[int]:
    return frozenset(token for token in (tokens.eou, tokens.eob) if token is not None)


def _decode(
    decoder: DecoderSteps, config: NetworkConfig, encoded: Array, ends: frozenset[int]
) -> list[tuple[int, int]]:
    """Greedy search: (frame, token) of every token."""
    zero = np.zeros((1, config.prediction_hidden), np.float32)
    start = decoder.predict(np.array([config.blank]), zero, zero)
    state = start
    emitted = []
    for frame in range(len(encoded)):
        for _ in range(MAX_SYMBOLS_PER_FRAME):
            token = int(decoder.best(encoded[frame : frame + 1], state[0])[0][0])
            if token == config.blank:
                break
            emitted.append((frame, token))
            if token in ends:
                state = start
                break
            state = decoder.predict(np.array([token]), *state[1:])
    return emitted
