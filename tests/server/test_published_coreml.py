"""Published Core ML layouts say what our own bundle says: look-alikes of the embedded model, interpreted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_live.cli import app
from parakeet_live.engine.backend import StepInput
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_live.engine.nemo.coreml import PublishedNetwork
from parakeet_live.engine.nemo.selftest import CadenceError
from parakeet_models.layouts import ForeignBundle, describe, load_model
from parakeet_models.layouts.layout import SeparateDecoder
from support.coreml import CONFIG, make_network, require_coremltools
from support.hearing import AUDIO, assert_same, hear_all, network_hears_all
from support.layouts.look_alikes import COREML, LookAlikes
from support.mil.runtime import PACKAGE_INSIDE, open_interpreted

require_coremltools()

from support.layouts.coreml_files import make_fluidinference, make_soniqo  # noqa: E402

SMALL_PIECES = ["<unk>", "<EOU>", "<EOB>", *(f"▁p{index}" for index in range(CONFIG.vocabulary - 3))]
UNITS_OF_PARTS = {
    "soniqo": [
        "encoder.mlmodelc on CPU_AND_NE",
        "decoder.mlmodelc on CPU_ONLY",
        "joint.mlmodelc on CPU_ONLY",
    ],
    "fluidinference": [
        "streaming_encoder.mlmodelc on CPU_AND_NE",
        "decoder.mlmodelc on CPU_ONLY",
        "joint_decision.mlmodelc on CPU_ONLY",
    ],
    "fluidinference-fused": [
        "streaming_encoder.mlmodelc on CPU_AND_NE",
        "decoder_joint_decision_fused.mlmodelc on CPU_ONLY",
    ],
}


def published(directory: Path) -> ForeignBundle:
    bundle = load_model(directory)
    assert isinstance(bundle, ForeignBundle)
    return bundle


def load(bundle: ForeignBundle, report: Callable[[str], None] = lambda line: None) -> PublishedNetwork:
    """What a worker process loads; outputs are half precision where they are published so, and have gaps."""
    return PublishedNetwork(bundle.layout, 1, CoremlOptions(), open_interpreted, report)


@pytest.mark.parametrize("name", COREML)
def test_the_same_tokens_on_the_same_frames(look_alikes: LookAlikes, name: str) -> None:
    """soniqo's with eight-bit encoder weights and half-precision outputs; FluidInference's with both decoders."""
    bundle = published(look_alikes.directory(name))
    loaded: list[str] = []
    network = load(bundle, loaded.append)
    assert [line.removeprefix("loading ") for line in loaded] == UNITS_OF_PARTS[name]
    # What the model makes of speech outside its vocabulary is decided by hairs, and eight bits decide them otherwise.
    compared = {
        recording: heard
        for recording, heard in network_hears_all(look_alikes.network, bundle).items()
        if name != "soniqo" or recording.startswith("fsdd")
    }
    assert_same(hear_all(bundle, network.step), compared, probability=0.2 if name == "soniqo" else 0.02)


def test_packages_that_are_not_compiled(look_alikes: LookAlikes, tmp_path: Path) -> None:
    """The same models as ``.mlpackage``, under other names; beside a compiled one, the package of its name is left."""
    source = look_alikes.directory("fluidinference")
    for number, path in enumerate(sorted(source.glob("*.mlmodelc"))):
        shutil.copytree(path / PACKAGE_INSIDE, tmp_path / f"model{number}.mlpackage")
    shutil.copyfile(source / "vocab.json", tmp_path / "vocab.json")
    layout, compiled = describe(tmp_path), describe(source)
    assert layout.encoder.ports == compiled.encoder.ports
    assert isinstance(layout.decoder, SeparateDecoder)
    assert isinstance(compiled.decoder, SeparateDecoder)
    assert layout.decoder.joint.ports == compiled.decoder.joint.ports
    network = PublishedNetwork(layout, 1, CoremlOptions(), open_interpreted, lambda line: None)
    mel = np.full((33, layout.mel.bins), -8.0, np.float32)
    assert network.step(StepInput(0, mel, begin=8, end=33), True) == []
    shutil.copytree(source / "decoder.mlmodelc", tmp_path / "model0.mlmodelc")
    assert describe(tmp_path).files["prediction"].name == "model0.mlmodelc"


def test_the_command_line_runs_a_layout_in_a_worker_process(
    interpreter: None, look_alikes: LookAlikes
) -> None:
    directory = look_alikes.directory("fluidinference")
    recording = AUDIO / "fsddstr_george_15.flac"
    result = CliRunner().invoke(app, ["transcribe", "--model", str(directory), str(recording)])
    assert result.exit_code == 0, result.output
    assert result.stdout == "seven five five one\n"
    assert "recognition process 1 of 1 is ready: 4 frames in" in result.stderr


@pytest.mark.parametrize(("variant", "remembered", "advance"), [("160ms", 3, 1), ("1280ms", 17, 16)])
def test_fluidinference_variants_whose_memory_runs_ahead(
    tmp_path: Path, variant: str, remembered: int, advance: int
) -> None:
    bundle = published(make_fluidinference(make_network(), SMALL_PIECES, tmp_path / variant, variant))
    with pytest.raises(CadenceError) as refused:
        load(bundle)
    message = str(refused.value)
    assert f"remembers {remembered} encoder frames" in message
    assert f"advances by {advance} " in message
    assert "use the folder 320ms of the same repository" in message


def test_soniqo_graph_of_33_frames_is_refused_once(interpreter: None, tmp_path: Path) -> None:
    """By the command, with the remedy, and without trying other processors."""
    directory = make_soniqo(
        make_network(), SMALL_PIECES, tmp_path / "soniqo", mel_frames=33, cache_drop=0, palettized=False
    )
    result = CliRunner().invoke(
        app, ["transcribe", "--model", str(directory), str(AUDIO / "fsdd_jackson_7_0.flac")]
    )
    assert result.exit_code == 1
    assert "remembers 5 encoder frames of a step (400 ms) but advances by 4 (320 ms)" in result.stderr
    assert "melFrames 64 and outputFrames 4" in result.stderr
    assert "trying other processors" not in result.stderr
