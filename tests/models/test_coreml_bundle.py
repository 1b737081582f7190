"""Bundles of Core ML packages: how they are made, what their manifests say, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from support.coreml import require_coremltools

require_coremltools()

from parakeet_live.audio.files import read_blocks  # noqa: E402
from parakeet_live.cli import app  # noqa: E402
from parakeet_models.bundle import Bundle, BundleError, Parity, Precision, load_bundle  # noqa: E402
from parakeet_models.coreml_runtime import RUNTIME_VARIABLE  # noqa: E402
from parakeet_models.export import ParityError, TestAudio, convert, from_bundle  # noqa: E402
from parakeet_models.export.coreml.bundle import write_package_bundle  # noqa: E402
from parakeet_models.export.coreml.parity import measure_package_parity  # noqa: E402
from parakeet_models.packages import State  # noqa: E402
from support.mil import InterpretedModel  # noqa: E402
from support.random_bundle import make_random_bundle  # noqa: E402

DATA = Path(__file__).parents[1] / "data"
SPEECH = TestAudio(
    "two recordings",
    np.concatenate(
        [
            block
            for name in ("fsddstr_jackson_10", "fsddstr_george_15")
            for block in (*read_blocks(DATA / "audio" / f"{name}.flac"), np.zeros(16_000, np.float32))
        ]
    ),
)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def interpret(package: Path, function: str | None, units: object, *, half: bool = False) -> InterpretedModel:
    return InterpretedModel(package, units, function, half=half, strided=True)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A small ONNX bundle with random weights."""
    return make_random_bundle(tmp_path_factory.mktemp("graphs"))


@pytest.fixture(scope="module")
def converted(graphs: Bundle, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Packages of it, and what the command said."""
    out = tmp_path_factory.mktemp("converted") / "packages"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(RUNTIME_VARIABLE, raising=False)
        patch.setattr("sys.platform", "linux")
        return run("models", "convert", graphs.directory, "--to", "coreml", "--out", out), out


def test_what_the_command_says(converted: tuple[Result, Path]) -> None:
    result, out = converted
    assert result.exit_code == 0, result.output
    assert f"random (fp16) is in {out}" in result.stdout
    assert "encoder_16.mlpackage" in result.stdout
    assert "main " in result.stdout
    assert "Not compared with PyTorch, because Core ML packages run on macOS only" in result.stdout
    assert "reading the weights of random back from its graphs: " in result.stderr


def test_manifest(graphs: Bundle, converted: tuple[Result, Path]) -> None:
    manifest = load_bundle(converted[1]).manifest
    assert (manifest.runtime, manifest.weights, manifest.weights_origin) == ("coreml", "fp16", "random")
    assert (manifest.step_sizes, manifest.parity) == ((2, 16), None)
    assert manifest.geometry == graphs.manifest.geometry
    assert (manifest.source, manifest.licence) == (graphs.manifest.source, graphs.manifest.licence)
    assert manifest.coreml is not None
    assert (manifest.coreml.state, manifest.coreml.macos) == ("explicit", 14)
    weights = [file.path for file in manifest.files if file.path.endswith("weight.bin")]
    assert "encoder_2.mlpackage/Data/com.apple.CoreML/weights/weight.bin" in weights


def test_manifests_of_onnx_bundles_stay_as_they_were(graphs: Bundle) -> None:
    manifest = json.loads((graphs.directory / "manifest.json").read_text(encoding="utf-8"))
    assert "coreml" not in manifest
    assert manifest["format"] == 2


def edited(bundle: Path, copy: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a bundle whose manifest was changed."""
    shutil.copytree(bundle, copy)
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("coreml"), "need each other"),
        (lambda m: m.update(runtime="onnx"), "need each other"),
        (lambda m: m["coreml"].update(joint="../joint.mlpackage"), "must lie in ../joint.mlpackage"),
        (lambda m: m["coreml"].update(prediction="joint.mlpackage"), "must lie in joint.mlpackage"),
        (lambda m: m["coreml"]["encoder"][0].update(package="encoder"), "must lie in encoder,"),
        (lambda m: m.update(step_sizes=[2, 4]), "one function for each of step_sizes"),
        (lambda m: m["coreml"].update(state="elsewhere"), "coreml.state"),
        (lambda m: m["coreml"].update(extra=1), "coreml.extra"),
        (
            lambda m: m["files"][0].update(path=m["files"][0]["path"].partition("/")[0] + "/../../escape"),
            "outside the bundle",
        ),
        (lambda m: m["files"][1].update(sha256="0" * 64), "sha256 differs"),
        (lambda m: m.update(files=[f for f in m["files"] if f["role"] != "joint"]), "'joint' must lie in"),
    ],
)
def test_broken_manifests_are_refused(
    converted: tuple[Result, Path], tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        load_bundle(edited(converted[1], tmp_path / "copy", change))


def test_palettized_weights_are_for_core_ml(graphs: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="palettized weights are for the runtime coreml"):
        load_bundle(edited(graphs.directory, tmp_path / "copy", lambda m: m.update(weights="palettized")))


def test_impossible_requests(graphs: Bundle, converted: tuple[Result, Path], tmp_path: Path) -> None:
    convert = partial(run, "models", "convert", graphs.directory, "--out", tmp_path / "out")
    for arguments, message in (
        (("--precision", "palettized"), "add --to coreml"),
        (("--step", 4), "takes steps of any even size"),
        (("--to", "coreml", "--state", "mlstate", "--precision", "fp32"), "states hold fp16 only"),
        (("--to", "coreml", "--step", 3), "use a multiple of 2"),
    ):
        result = convert(*arguments)
        assert result.exit_code == 1, result.output
        assert message in result.stderr
        assert not (tmp_path / "out").exists()
    result = run("models", "convert", converted[1], "--to", "coreml", "--out", tmp_path / "out")
    assert "convert its original" in result.stderr


def packages(
    bundle: Bundle, out: Path, precision: Precision, state: State, steps: tuple[int, ...], half: bool
) -> Parity:
    """Convert with the interpreter as what runs packages; the figures in the manifest."""
    write = partial(write_package_bundle, state=state, steps=steps, open_model=partial(interpret, half=half))
    converted = convert(from_bundle(bundle), out, precision=precision, audio=SPEECH, write=write)
    assert converted.manifest.parity is not None
    return converted.manifest.parity


def test_states_in_one_package_of_several_functions(graphs: Bundle, tmp_path: Path) -> None:
    parity = packages(graphs, tmp_path / "out", "fp16", "mlstate", (2, 4), half=False)
    manifest = load_bundle(tmp_path / "out").manifest
    assert manifest.coreml is not None
    assert {function.package for function in manifest.coreml.encoder} == {"encoder.mlpackage"}
    assert [function.function for function in manifest.coreml.encoder] == ["step_2", "step_4"]
    assert (manifest.coreml.state, manifest.coreml.macos) == ("mlstate", 15)
    assert parity.max_difference < 2e-2
    assert parity.steps >= 45


def test_packages_that_compute_something_else_are_refused(graphs: Bundle, tmp_path: Path) -> None:
    class Wrong(InterpretedModel):
        def predict(self, data: Any, state: Any = None) -> Any:
            outputs = super().predict(data, state)
            return {name: value * (1.5 if name == "encoded" else 1.0) for name, value in outputs.items()}

    write = partial(
        write_package_bundle,
        steps=(2,),
        open_model=lambda path, function, units: Wrong(path, units, function),
    )
    with pytest.raises(ParityError, match="differ from PyTorch by"):
        convert(from_bundle(graphs), tmp_path / "out", precision="fp32", write=write)
    assert not (tmp_path / "out").exists()


# Trained weights, real speech


def test_trained_weights_in_fp32(embedded_packages: Bundle, embedded_graphs: Bundle) -> None:
    parity = measure_package_parity(
        from_bundle(embedded_graphs).network, embedded_packages, SPEECH, interpret
    )
    assert parity.max_difference < 1e-4
    assert parity.steps >= 45
    assert parity.tokens > 5
    assert parity.token_agreement == 1.0


def test_trained_weights_in_fp16(embedded_graphs: Bundle, tmp_path: Path) -> None:
    """Weights, caches and arithmetic in half precision: the same tokens on the same frames."""
    parity = packages(embedded_graphs, tmp_path / "out", "fp16", "explicit", (2,), half=True)
    assert parity.max_difference < 2e-2
    assert parity.tokens > 5
    assert parity.token_agreement == 1.0
