"""Does a bundle compute what the network computes? Measured on every export and recorded in its manifest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
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
    features = torch.from_numpy(log_mel(audio.samples, mel))[None]
    ends = frozenset(token for token in (tokens.eou, tokens.eob) if token is not None)
    with torch.inference_mode():
        encoded, _ = network.encoder(features, torch.tensor([features.shape[1]]))
    expected = Counter((t.frame, t.token) for t in greedy_decode(network, encoded[0], reset_on=ends))
    found = Counter(_decode(directory, network.config, _stream(graph, features, step_sizes[0]), ends))
    total = expected.total() + found.total()
    return Parity(
        max_difference=worst,
        relative_difference=relative,
        steps=PARITY_STEPS,
        audio=audio.name,
        tokens=expected.total(),
        token_agreement=2 * (expected & found).total() / total if total else 1.0,
    )


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
        return (*found[:3], *(found[3 + i * layers : 3 + (i + 1) * layers] for i in range(3)))


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
        found, _, stage2, _, _, conv = graph(
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


def _stream(graph: GraphEncoder, mel: Tensor, size: int) -> Tensor:
    """Encode mel [1, T, bins] in steps of ``size`` frames; the joint's projection of them, float[T', joint_hidden]."""
    state = EncoderState.initial(graph.config, 1)
    hop = SUBSAMPLING_FACTOR * size
    count = mel.shape[1] + SUBSAMPLING_FACTOR
    padded = torch.nn.functional.pad(mel, (0, 0, SUBSAMPLING_FACTOR, hop + 1))
    encoded = []
    for start in range(0, count - 1, hop):
        begin = torch.tensor([SUBSAMPLING_FACTOR if start == 0 else 0])
        end = torch.tensor([min(hop + 1, count - start)])
        step = graph.step(padded[:, start : start + hop + 1].contiguous(), begin, end, state)
        encoded.append(step[0, : int(valid_frames(end))])
    return torch.cat(encoded)


def _decode(
    directory: Path, config: NetworkConfig, encoded: Tensor, ends: frozenset[int]
) -> list[tuple[int, int]]:
    """Greedy search with the exported prediction network and joint: (frame, token) of every token."""
    prediction, joint = (
        ort.InferenceSession(
            str(directory / f"{name}.onnx"), _session_options(), providers=["CPUExecutionProvider"]
        )
        for name in ("prediction", "joint")
    )

    def predict(token: int, h: Float32, c: Float32) -> list[Float32]:
        return prediction.run(None, {"token": np.array([token]), "h": h, "c": c})

    zero = np.zeros((1, config.prediction_hidden), np.float32)
    start = predict(config.blank, zero, zero)
    state = start
    emitted = []
    for frame in range(len(encoded)):
        for _ in range(MAX_SYMBOLS_PER_FRAME):
            inputs = {"encoder": encoded[frame : frame + 1].numpy(), "prediction": state[0]}
            token = int(joint.run(["token"], inputs)[0][0])
            if token == config.blank:
                break
            emitted.append((frame, token))
            if token in ends:
                state = start
                break
            state = predict(token, *state[1:])
    return emitted
