"""The interpreter of MIL programs against NumPy and PyTorch, and its manners."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from support.coreml import CONFIG, make_network, require_coremltools

require_coremltools()

import coremltools as ct  # noqa: E402
from coremltools.converters.mil import Builder  # noqa: E402

from parakeet_models.export.coreml.toolkit import quiet  # noqa: E402
from parakeet_models.network.encoder import Encoder  # noqa: E402
from support.mil import InterpretedModel, UnknownOperationError  # noqa: E402

mb = Builder  # the name that coremltools' documentation gives it
X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def save(program: object, path: Path, **options: object) -> Path:
    with quiet():
        model = ct.convert(
            program,
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.iOS17,
            compute_precision=ct.precision.FLOAT32,
            skip_model_load=True,
            **options,
        )
        model.save(str(path))
    return path


def test_operations_of_published_graphs(tmp_path: Path) -> None:
    """Operations that our own encoder does without; expected values by NumPy."""

    @mb.program(input_specs=[mb.TensorSpec(X.shape), mb.TensorSpec((2,))], opset_version=ct.target.iOS17)
    def program(x, lengths):  # type: ignore[no-untyped-def]
        index = mb.cast(x=mb.range_1d(start=0, end=4, step=1), dtype="fp32")
        inside = mb.less(x=index, y=mb.expand_dims(x=lengths, axes=[1]))
        first, second = mb.split(x=x, num_splits=2, axis=2)
        ids = mb.cast(x=lengths, dtype="int32")
        best, places = mb.topk(x=x, k=2, axis=2)
        return (
            mb.floor_div(x=x, y=np.float32(0.3), name="floor_div"),
            mb.mod(x=x, y=np.float32(0.7), name="mod"),
            mb.select(cond=mb.greater_equal(x=x, y=np.float32(0)), a=x, b=mb.square(x=x), name="select"),
            mb.cast(x=mb.logical_and(x=inside, y=mb.logical_not(x=mb.equal(x=index, y=1.0))), dtype="fp32", name="and"),
            mb.cast(x=mb.logical_or(x=inside, y=mb.not_equal(x=index, y=1.0)), dtype="fp32", name="or"),
            mb.tile(x=x, reps=[1, 2, 1], name="tile"),
            mb.stack(values=[first, second], axis=1, name="stack"),
            mb.gather(x=x, indices=ids, axis=2, name="gather"),
            mb.gather_along_axis(x=x, indices=places, axis=2, name="gather_along_axis"),
            mb.identity(x=best, name="topk"),
            mb.slice_by_size(x=x, begin=[0, 1, 1], size=[2, 2, -1], name="slice_by_size"),
            mb.slice_by_index(
                x=x, begin=[1, 0, 0], end=[0, 0, 4], end_mask=[False, True, False], stride=[1, 2, 3],
                squeeze_mask=[True, False, False], name="slice_by_index",
            ),
            mb.pad(x=x, pad=[1, 2, 3, 0], mode="constant", constant_val=7.0, name="pad"),
            mb.reduce_sum(x=x, axes=[1], keep_dims=True, name="reduce_sum"),
            mb.reduce_log_sum_exp(x=x, axes=[2], name="reduce_log_sum_exp"),
            mb.cast(x=mb.reduce_argmax(x=x, axis=1), dtype="fp32", name="reduce_argmax"),
            mb.cumsum(x=x, axis=1, name="cumsum"),
            mb.layer_norm(x=x, axes=[1], name="layer_norm"),
            mb.matmul(x=x, y=x, transpose_y=True, name="matmul"),
            mb.pow(x=mb.exp(x=x), y=np.float32(0.5), name="pow"),
            mb.log(x=mb.abs(x=x), name="log"),
        )  # fmt: skip

    model = InterpretedModel(save(program, tmp_path / "operations.mlpackage"))
    lengths = np.array([1.0, 3.0], np.float32)
    result = model.predict(dict(zip(model.inputs, (X, lengths), strict=True)))
    index = np.arange(4)
    inside = index < lengths[:, None]
    order = np.argsort(-X, axis=2)[..., :2]
    centred = X - X.mean(1, keepdims=True)
    expected = {
        "floor_div": np.floor(X / np.float32(0.3)),
        "mod": np.mod(X, np.float32(0.7)),
        "select": np.where(X >= 0, X, X * X),
        "and": inside & (index != 1),
        "or": inside | (index != 1),
        "tile": np.tile(X, (1, 2, 1)),
        "stack": np.stack([X[..., :2], X[..., 2:]], 1),
        "gather": X[..., [1, 3]],
        "gather_along_axis": np.take_along_axis(X, order, 2),
        "topk": np.take_along_axis(X, order, 2),
        "slice_by_size": X[:, 1:3, 1:],
        "slice_by_index": X[1, 0::2, 0:4:3],
        "pad": np.pad(X, ((0, 0), (1, 2), (3, 0)), constant_values=7.0),
        "reduce_sum": X.sum(1, keepdims=True),
        "reduce_log_sum_exp": np.log(np.exp(X).sum(2)),
        "reduce_argmax": X.argmax(1),
        "cumsum": X.cumsum(1),
        "layer_norm": centred / np.sqrt(centred.var(1, keepdims=True) + 1e-5),
        "matmul": X @ X.transpose(0, 2, 1),
        "pow": np.exp(X / 2),
        "log": np.log(np.abs(X)),
    }
    assert set(result) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value.astype(np.float32), rtol=1e-5, atol=1e-5, err_msg=name)


def traced(module: nn.Module, inputs: dict[str, torch.Tensor], outputs: int, path: Path) -> InterpretedModel:
    with quiet(), torch.no_grad():
        trace = torch.jit.trace(module.eval(), tuple(inputs.values()), check_trace=False)
    types = [
        ct.TensorType(name, tensor.shape, dtype=np.float32 if tensor.is_floating_point() else np.int32)
        for name, tensor in inputs.items()
    ]
    return InterpretedModel(
        save(trace, path, inputs=types, outputs=[ct.TensorType(f"out{i}") for i in range(outputs)])
    )


class MaskingEncoder(Encoder):
    """The offline encoder with its mask spelt as NeMo spells it, in the operations that the converter knows."""

    def attention_hidden(self, frames: int, length: torch.Tensor) -> torch.Tensor:
        chunk = torch.div(torch.arange(frames), self.config.attention_chunk, rounding_mode="trunc")
        behind = chunk[:, None] - chunk[None, :]
        chunks = self.config.attention_left // self.config.attention_chunk
        inside = torch.logical_and(behind >= 0, behind <= chunks)
        present = torch.arange(frames)[None, None, None, :] < length[:, None, None, None]
        return torch.logical_not(torch.logical_and(inside[None, None], present))


def test_an_encoder_that_builds_its_masks_in_the_graph(tmp_path: Path) -> None:
    """As the published encoders do: lengths, comparisons and the relative shift are part of the program."""
    network = make_network()
    encoder = MaskingEncoder(network.config)
    encoder.load_state_dict(network.encoder.state_dict())
    inputs = {
        "mel": torch.randn(1, 57, CONFIG.mel_bins) * 3 - 8,
        "length": torch.tensor([50], dtype=torch.int32),
    }
    model = traced(encoder, inputs, 2, tmp_path / "offline.mlpackage")
    with torch.inference_mode():
        expected, length = network.encoder(*inputs.values())
    result = model.predict({name: tensor.numpy() for name, tensor in inputs.items()})
    valid = int(length)
    assert int(result["out1"][0]) == valid
    assert np.abs(result["out0"][:, :valid] - expected[:, :valid].numpy()).max() < 1e-4


class Decoder(nn.Module):
    """Embedding and LSTM with the states apart, as the published decoders have them."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = make_network().decoder

    def forward(self, token: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output, (h, c) = self.decoder(token, (h, c))
        return output, h, c


def test_lstm(tmp_path: Path) -> None:
    hidden = CONFIG.prediction_hidden
    inputs = {
        "token": torch.tensor([[7]], dtype=torch.int32),
        "h": torch.randn(1, 1, hidden),
        "c": torch.randn(1, 1, hidden),
    }
    model = traced(Decoder(), inputs, 3, tmp_path / "decoder.mlpackage")
    assert "lstm" in model.operations()
    with torch.inference_mode():
        expected = Decoder()(*inputs.values())
    result = model.predict({name: tensor.numpy() for name, tensor in inputs.items()})
    for index, tensor in enumerate(expected):
        assert np.abs(result[f"out{index}"] - tensor.numpy()).max() < 1e-6


@pytest.fixture(scope="module")
def doubler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    @mb.program(input_specs=[mb.TensorSpec((2, 3))])
    def program(x):  # type: ignore[no-untyped-def]
        return mb.mul(x=x, y=np.float32(2), name="double")

    return save(program, tmp_path_factory.mktemp("doubler") / "doubler.mlpackage")


def test_an_unknown_operation_is_named(tmp_path: Path) -> None:
    @mb.program(input_specs=[mb.TensorSpec((1, 3, 4, 4))])
    def program(x):  # type: ignore[no-untyped-def]
        return mb.local_response_norm(x=x, size=3)

    path = save(program, tmp_path / "strange.mlpackage")
    with pytest.raises(UnknownOperationError, match=r"strange\.mlpackage.*local_response_norm"):
        InterpretedModel(path)


def test_inputs_are_checked(doubler: Path) -> None:
    model = InterpretedModel(doubler)
    x = np.ones((2, 3))
    assert np.array_equal(model.predict({"x": x})["double"], 2 * x)
    with pytest.raises(ValueError, match="missing"):
        model.predict({})
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        model.predict({"x": x[0]})
    with pytest.raises(ValueError, match="unknown inputs: y"):
        model.predict({"x": x, "y": x})
    with pytest.raises(ValueError, match="no state"):
        model.make_state()
    with pytest.raises(ValueError, match="one function only"):
        InterpretedModel(doubler, function_name="step_2")


def test_outputs_may_have_gaps(doubler: Path) -> None:
    output = InterpretedModel(doubler, strided=True).predict({"x": np.ones((2, 3))})["double"]
    assert not output.flags.c_contiguous
    assert np.array_equal(output, np.full((2, 3), 2.0))


def test_two_threads_on_one_model_are_found_out(doubler: Path) -> None:
    model = InterpretedModel(doubler)
    entered, leave = threading.Event(), threading.Event()

    original = model._run

    def slow(*arguments: object) -> None:
        entered.set()
        leave.wait(10)
        original(*arguments)  # type: ignore[arg-type]

    model._run = slow  # type: ignore[method-assign]
    thread = threading.Thread(target=model.predict, args=({"x": np.ones((2, 3))},))
    thread.start()
    entered.wait(10)
    try:
        with pytest.raises(RuntimeError, match="two threads use one model"):
            model.predict({"x": np.ones((2, 3))})
    finally:
        leave.set()
        thread.join()
