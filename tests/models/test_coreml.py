"""Core ML packages against PyTorch, executed by interpreting their programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from support.coreml import (
    CONFIG,
    MEL,
    TOKENS,
    Difference,
    PackageStream,
    compare,
    make_network,
    require_coremltools,
    stream,
)

require_coremltools()

from parakeet_models.bundle import Precision  # noqa: E402
from parakeet_models.coreml import (  # noqa: E402
    METADATA_KEY,
    PackageError,
    PackageMetadata,
    cache_shapes,
)
from parakeet_models.export.coreml.compress import palette  # noqa: E402
from parakeet_models.export.coreml.convert import convert_encoder, convert_joint, convert_prediction  # noqa: E402
from parakeet_models.export.coreml.encoder import ChannelsFirstEncoder  # noqa: E402
from parakeet_models.export.coreml.package import write_packages  # noqa: E402
from parakeet_models.export.coreml.report import operation_counts  # noqa: E402
from parakeet_models.frames import valid_frames  # noqa: E402
from parakeet_models.network import ParakeetNetwork  # noqa: E402
from parakeet_models.packages import State  # noqa: E402
from support.mil import InterpretedModel  # noqa: E402

STEPS = 50
"""Enough to fill the attention cache of 70 frames with steps of two, and to shift it."""
UNWANTED = ("gather", "gather_along_axis", "cast", "linear", "matmul", "less", "select", "shape", "tile")
"""What keeps a program off the Neural Engine, or what a better operation exists for there."""


@pytest.fixture(scope="module")
def network() -> ParakeetNetwork:
    return make_network()


Packages = Callable[..., Path]


@pytest.fixture(scope="module")
def packages(network: ParakeetNetwork, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Writes a set of packages once, however many tests ask for it."""
    made: dict[tuple[object, ...], Path] = {}

    def make(precision: Precision, state: State, steps: tuple[int, ...], multifunction: bool) -> Path:
        key = (precision, state, steps, multifunction)
        if key not in made:
            made[key] = tmp_path_factory.mktemp(f"{precision}-{state}")
            write_packages(
                network,
                MEL,
                TOKENS,
                made[key],
                precision=precision,
                state=state,
                steps=steps,
                multifunction=multifunction,
            )
        return made[key]

    return make


FP32 = ("fp32", "explicit", (2,), False)
MULTIFUNCTION = ("fp16", "explicit", (2, 16), True)
MLSTATE = ("fp16", "mlstate", (2, 4), True)
INT8 = ("int8", "mlstate", (2,), True)
PALETTIZED = ("palettized", "explicit", (2,), False)


def load_encoders(directory: Path, **options: bool) -> dict[int, InterpretedModel]:
    """Models by step size, found as a backend finds them: by the packages' own metadata."""
    models = {}
    for path in sorted(directory.glob("encoder*.mlpackage")):
        default = InterpretedModel(path, **options)
        steps = PackageMetadata.from_user_defined(default.user_defined_metadata).steps
        for function, step in steps.items():
            models[step] = InterpretedModel(path, function_name=function, **options)
    return models


def run(network: ParakeetNetwork, models: dict[int, InterpretedModel], seed: int = 0) -> Difference:
    sizes = np.random.default_rng(seed).choice(list(models), STEPS).tolist()
    packaged = PackageStream(models, network.config)
    # The last step is half full: of its frames some exist and some do not.
    last = 8 * sizes[-1] // 2
    return compare([(packaged.step(step), step.expected) for step in stream(network, sizes, last, seed)])


def test_fp32_equals_pytorch(network: ParakeetNetwork, packages: Packages) -> None:
    assert run(network, load_encoders(packages(*FP32))).largest < 1e-4


@pytest.mark.parametrize("half", [False, True], ids=["fp32-arithmetic", "fp16-arithmetic"])
@pytest.mark.parametrize("kind", [MULTIFUNCTION, MLSTATE], ids=["multifunction", "mlstate"])
def test_fp16_in_mixed_steps(
    network: ParakeetNetwork, packages: Packages, kind: tuple[object, ...], half: bool
) -> None:
    assert run(network, load_encoders(packages(*kind), half=half)).largest < 2e-2


@pytest.mark.parametrize("kind", [INT8, PALETTIZED], ids=["int8", "palettized"])
def test_eight_bit_weights(network: ParakeetNetwork, packages: Packages, kind: tuple[object, ...]) -> None:
    difference = run(network, load_encoders(packages(*kind)))
    print(f"{kind[0]}: largest difference {difference.largest:.3f}, {difference.snr:.1f} dB")
    assert difference.snr > 30


def test_a_step_alone_in_its_package_equals_the_function(packages: Packages) -> None:
    """The packages for macOS 14 and the functions for macOS 15 are the same programs."""
    alone = InterpretedModel(packages(*FP32) / "encoder_2.mlpackage")
    function = InterpretedModel(packages(*MULTIFUNCTION) / "encoder.mlpackage", function_name="step_2")
    assert alone.operations() == function.operations()


def test_streams_share_a_model_but_no_state(network: ParakeetNetwork, packages: Packages) -> None:
    models = load_encoders(packages(*MLSTATE))
    sizes = [2, 4, 2, 2, 4, 4, 2, 2]
    audio = [list(stream(network, sizes, 16, seed)) for seed in (1, 2)]
    alone = [PackageStream(models, CONFIG) for _ in audio]
    apart = [[one.step(step) for step in steps] for one, steps in zip(alone, audio, strict=True)]
    together = [PackageStream(models, CONFIG) for _ in audio]
    for index in range(len(sizes)):
        for one, steps, results in zip(together, audio, apart, strict=True):
            assert np.array_equal(one.step(steps[index]), results[index])


def test_programs_suit_the_neural_engine(packages: Packages) -> None:
    for function, counts in operation_counts(packages(*MULTIFUNCTION) / "encoder.mlpackage").items():
        assert not set(counts) & set(UNWANTED), function
        # Five in every layer, one in its convolution: each is a single operation over the channels.
        assert counts["layer_norm"] == 6 * CONFIG.layers
        assert counts["einsum"] == 2 * CONFIG.heads * CONFIG.layers


def test_functions_share_their_weights(network: ParakeetNetwork, packages: Packages) -> None:
    def weight_bytes(directory: Path) -> int:
        return (directory / "encoder.mlpackage/Data/com.apple.CoreML/weights/weight.bin").stat().st_size

    parameters = sum(parameter.numel() for parameter in network.encoder.parameters())
    # Besides the weights there are the position tables, which differ from function to function.
    assert weight_bytes(packages(*MULTIFUNCTION)) < 1.5 * 2 * parameters
    assert weight_bytes(packages(*MLSTATE)) < 1.5 * 2 * parameters
    assert weight_bytes(packages(*INT8)) < 1.5 * parameters


@pytest.mark.parametrize(
    "kind", [FP32, MULTIFUNCTION, MLSTATE, INT8, PALETTIZED], ids=lambda kind: "-".join(kind[:2])
)
def test_packages_describe_themselves(
    packages: Packages, kind: tuple[str, str, tuple[int, ...], bool]
) -> None:
    precision, state, steps, multifunction = kind
    directory = packages(*kind)
    for path in directory.glob("*.mlpackage"):
        model = InterpretedModel(path)
        metadata = PackageMetadata.from_user_defined(model.user_defined_metadata)
        assert (metadata.mel, metadata.tokens) == (MEL, TOKENS)
        assert metadata.geometry.d_model == CONFIG.d_model
        if metadata.part != "encoder":
            assert metadata.compute_units == "CPU_ONLY"
            assert metadata.precision == ("fp32" if precision == "fp32" else "fp16")
            continue
        assert (metadata.precision, metadata.state) == (precision, state)
        assert tuple(metadata.steps.values()) == steps
        assert model.get_spec().specificationVersion == (9 if multifunction else 8)
        shapes = {name: feature.shape for name, feature in (model.states or model.inputs).items()}
        expected = cache_shapes(metadata.geometry)
        assert {name: shapes[name] for name in expected} == expected
        real = np.float32 if precision == "fp32" else np.float16
        assert {feature.dtype for feature in model.outputs.values()} == {np.dtype(real)}


def test_foreign_metadata_is_refused() -> None:
    with pytest.raises(PackageError, match="not a package of parakeet-live"):
        PackageMetadata.from_user_defined({})
    with pytest.raises(PackageError, match="convert the model again"):
        PackageMetadata.from_user_defined({METADATA_KEY: '{"format": 99}'})


def test_impossible_packages_are_refused(network: ParakeetNetwork) -> None:
    with pytest.raises(ValueError, match="multiple of 2"):
        convert_encoder(network, 3, "fp16", "explicit", "macOS14")
    with pytest.raises(ValueError, match="fp16 only"):
        convert_encoder(network, 2, "fp32", "mlstate", "macOS15")
    with pytest.raises(ValueError, match="macOS 15"):
        convert_encoder(network, 2, "fp16", "mlstate", "macOS14")


@pytest.mark.parametrize("options", [{"use_bias": True, "xscaling": True}, {"attention_right": 6}], ids=str)
def test_layout_with_other_options(options: dict[str, object]) -> None:
    """The layout itself, before conversion, for networks that are built otherwise."""
    network = make_network(replace(CONFIG, **options))
    chunk = network.config.attention_chunk
    encoders = {size: ChannelsFirstEncoder(network, size).eval() for size in (chunk, 2 * chunk)}
    sizes = np.random.default_rng(0).choice(list(encoders), STEPS).tolist()
    caches = [torch.zeros(shape) for shape in cache_shapes(network.config).values()]
    valid, pairs = 0, []
    with torch.inference_mode():
        for step in stream(network, sizes, 8 * sizes[-1] - 3):
            counters = (torch.full((1, 1, 1, 1), float(count)) for count in (step.begin, step.end, valid))
            out, *caches = encoders[step.frames](torch.from_numpy(step.mel)[None, None], *counters, *caches)
            valid = min(valid + step.frames, network.config.attention_left)
            pairs.append((out[0, :, 0].T[: len(step.expected)].numpy(), step.expected))
    assert compare(pairs).largest < 1e-4


def test_every_end_of_a_step(network: ParakeetNetwork) -> None:
    """The comparisons written as clipped differences agree with whole-number arithmetic, for every possible end."""
    encoder = ChannelsFirstEncoder(network, 4)

    def counter(value: int) -> torch.Tensor:
        return torch.full((1, 1, 1, 1), float(value))

    for end in range(1, 34):
        for begin in (0, 8):
            ends = (end, end // 2, (end // 2 + 1) // 2)
            for stage, first in enumerate((begin, begin // 2 - 1, begin // 4 - 1)):
                window = encoder.valid_window(stage, counter(begin), counter(end)).flatten()
                index = torch.arange(len(window))
                assert torch.equal(window, ((index >= first) & (index < ends[stage])).float())
        mask = encoder.attention_mask(counter(end), counter(CONFIG.attention_left))[
            0, CONFIG.attention_left :, 0, -1
        ]
        assert int((mask == 0).sum()) == int(valid_frames(torch.tensor(end)))


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2), ("int8", 0.2)], ids=lambda value: str(value)
)
def test_prediction_and_joint(
    network: ParakeetNetwork, tmp_path: Path, precision: Precision, tolerance: float
) -> None:
    for part, convert in (("prediction", convert_prediction), ("joint", convert_joint)):
        convert(network, precision).save(str(tmp_path / f"{part}.mlpackage"))
    prediction, joint = (InterpretedModel(tmp_path / f"{part}.mlpackage") for part in ("prediction", "joint"))
    rng = np.random.default_rng(0)
    h = c = np.zeros((1, CONFIG.prediction_hidden), np.float32)
    state = None
    pairs, agree = [], 0
    tokens = [CONFIG.blank, *rng.integers(0, CONFIG.vocabulary, STEPS)]
    for token in tokens:
        result = prediction.predict({"token": np.array([token]), "h": h, "c": c})
        h, c = result["new_h"], result["new_c"]
        frame = rng.standard_normal((1, CONFIG.joint_hidden)).astype(np.float32)
        with torch.inference_mode():
            output, state = network.decoder(torch.tensor([[token]]), state)
            expected = network.joint.pred(output[0])
            logits = network.joint.combine(torch.from_numpy(frame), expected)
        best = joint.predict({"encoder": frame, "prediction": result["prediction"]})
        pairs.append((result["prediction"].astype(np.float32), expected.numpy()))
        pairs.append((best["probability"].astype(np.float32), logits.softmax(-1).amax(-1).numpy()))
        agree += int(best["token"][0] == int(logits.argmax()))
    assert compare(pairs).largest < tolerance
    assert agree == len(tokens) if precision == "fp32" else agree >= len(tokens) - 5


def test_a_palette_is_close_to_its_weights() -> None:
    weight = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float16)
    weight[0, 0] = 40.0
    table, index = palette(weight)
    assert len(table) == 256
    error = table[index].reshape(weight.shape).astype(np.float32) - weight
    # 256 levels spread evenly over the range, outlier included, would give an error of 0.05.
    assert np.sqrt(np.square(error).mean()) < 0.01
    assert abs(error[0, 0]) < 0.05


def test_a_palette_of_few_values_is_exact() -> None:
    weight = np.tile(np.array([0.5, -1.0, 2.0], np.float16), 1000)
    table, index = palette(weight)
    assert np.array_equal(table[index], weight)
