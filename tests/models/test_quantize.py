"""The eight-bit graph: close to fp32, and blind to its batch mates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from parakeet_models.bundle import encoder_inputs
from parakeet_models.export.onnx import export_graphs
from parakeet_models.export.quantize import quantize_columns, quantize_matmuls
from parakeet_models.network import EncoderState
from support.random_bundle import MEL, random_network


@pytest.fixture(scope="module")
def graphs(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[ort.InferenceSession, ort.InferenceSession, Path]:
    directory = tmp_path_factory.mktemp("graphs")
    export_graphs(random_network(40, 1), directory, precision="fp32")
    model = onnx.load(directory / "encoder.onnx")
    replaced = quantize_matmuls(model)
    # Per layer: qkv, attention output, two pointwise, four feed-forward; and the two projections around them.
    assert replaced == 3 * 8 + 2
    onnx.checker.check_model(model)
    onnx.save(model, directory / "int8.onnx")
    sessions = [ort.InferenceSession(str(directory / f"{name}.onnx")) for name in ("encoder", "int8")]
    return sessions[0], sessions[1], directory


def feed(batch: int, seed: int, loud_row: int | None = None) -> dict[str, np.ndarray]:
    network = random_network(40, 1)
    torch.manual_seed(seed)
    state = EncoderState.initial(network.config, batch)
    mel = torch.randn(batch, 17, MEL.bins) * 3 - 8
    if loud_row is not None:
        mel[loud_row] *= 40.0
    tensors = [
        mel,
        torch.zeros(batch, dtype=torch.int64),
        torch.full((batch,), 17),
        state.position,
        state.valid,
    ]
    tensors += [state.stage1, state.stage2, *state.keys, *state.values, *state.conv]
    arrays = [tensor.numpy() for tensor in tensors]
    return dict(zip(encoder_inputs(network.config.layers), arrays, strict=True))


def test_close_to_fp32(graphs: tuple[ort.InferenceSession, ort.InferenceSession, Path]) -> None:
    fp32, int8, _ = graphs
    inputs = feed(4, 0)
    expected, actual = fp32.run(None, inputs)[0], int8.run(None, inputs)[0]
    noise = np.square(expected - actual).sum() / np.square(expected).sum()
    assert 10 * np.log10(1 / noise) > 25


def test_a_row_does_not_depend_on_its_batch_mates(
    graphs: tuple[ort.InferenceSession, ort.InferenceSession, Path],
) -> None:
    _, int8, _ = graphs
    calm, loud = feed(6, 3), feed(6, 3, loud_row=5)
    alone = {name: value[2:3] for name, value in calm.items()}
    for together in (calm, loud):
        for ours, theirs in zip(int8.run(None, alone), int8.run(None, together), strict=True):
            assert np.array_equal(ours, theirs[2:3])


def test_weights_lose_at_most_half_a_level() -> None:
    weight = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    weight[:, 3] = 0.0
    values, scales = quantize_columns(weight)
    assert np.abs(values * scales - weight).max(axis=0) == pytest.approx(
        np.zeros(48), abs=float(scales.max()) / 2
    )
    assert not values[:, 3].any()


def test_an_all_zero_row_stays_finite(
    graphs: tuple[ort.InferenceSession, ort.InferenceSession, Path],
) -> None:
    _, int8, _ = graphs
    inputs = feed(2, 0)
    inputs["mel"][:] = 0.0
    assert all(np.isfinite(output).all() for output in int8.run(None, inputs))
