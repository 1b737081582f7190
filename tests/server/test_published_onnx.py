"""Published ONNX layouts run as they are and say what our own bundle says: look-alikes of the embedded model."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from typer.testing import CliRunner

from parakeet_live.cli import app
from parakeet_live.engine.backend import CapacityError, EngineError, StepInput
from parakeet_live.engine.backends import BackendChoice, open_backend
from parakeet_live.engine.nemo.backend import NemoOnnxBackend
from parakeet_live.engine.nemo.encoder import SILENCE, WindowedEncoder
from parakeet_live.engine.nemo.graph import OnnxGraph
from parakeet_live.engine.nemo.network import NemoNetwork
from parakeet_live.engine.nemo.selftest import equal_sizes
from parakeet_models.frames import valid_frames
from parakeet_models.layouts import ForeignBundle, LayoutError, describe, load_model
from parakeet_models.mel import log_mel
from parakeet_models.network import StreamingEncoder
from support.coreml import CONFIG, make_network
from support.hearing import (
    AUDIO,
    assert_same,
    encoded_as_published,
    hear,
    hear_all,
    network_hears_all,
    samples_of,
    steps_of,
)
from support.layouts.config import STREAMING
from support.layouts.look_alikes import ONNX, LookAlikes
from support.layouts.onnx_files import make_loopback_encoder, make_soniqo_onnx
from support.server_process import running_server
from support.sockets import END, cut, session

RECORDING = AUDIO / "fsddstr_george_15.flac"


def published(directory: Path) -> ForeignBundle:
    bundle = load_model(directory)
    assert isinstance(bundle, ForeignBundle)
    return bundle


def network_of(bundle: ForeignBundle) -> NemoNetwork:
    return NemoNetwork(bundle.layout, 2, lambda part, path: OnnxGraph(path))


@pytest.mark.parametrize("name", ONNX)
def test_the_same_tokens_on_the_same_frames(look_alikes: LookAlikes, name: str) -> None:
    bundle = published(look_alikes.directory(name))
    expected = network_hears_all(look_alikes.network, bundle)
    assert_same(hear_all(bundle, network_of(bundle).step), expected, probability=0.002)


def test_the_command_line_runs_a_layout(look_alikes: LookAlikes) -> None:
    directory = look_alikes.directory("altunenes")
    result = CliRunner().invoke(app, ["transcribe", "--model", str(directory), str(RECORDING)])
    assert result.exit_code == 0, result.output
    assert result.stdout == "seven five five one\n"
    assert "model altunenes" in result.stderr


async def test_the_server_serves_a_layout(look_alikes: LookAlikes, tmp_path: Path) -> None:
    """Two clients at the same time, warm-up included."""
    directory = look_alikes.directory("soniqo-onnx")
    with running_server(tmp_path / "log", "--model", str(directory), "--max-streams", "2") as url:
        names = ("fsddstr_george_15.flac", "fsddstr_jackson_00.flac")
        audio = [(samples_of(AUDIO / name) * 32767).astype("<i2").tobytes() for name in names]
        outcomes = await asyncio.gather(*(session(url, [*cut(data, 3200), END]) for data in audio))
    assert [outcome.texts for outcome in outcomes] == [["seven five five one"], ["five zero five"]]


def test_encoder_frames_equal_the_network(look_alikes: LookAlikes) -> None:
    """Every layout, against our streaming encoder that hears 160 ms of silence first and does not attend to it."""
    network = look_alikes.network
    own = StreamingEncoder(network)
    for name in ONNX:
        layout = describe(look_alikes.directory(name))
        encoder = WindowedEncoder(layout, OnnxGraph(layout.encoder.path))
        memory = encoder.begin()
        bundle = published(layout.directory)
        steps = list(steps_of(bundle, samples_of(RECORDING)))
        found = np.concatenate([encoder.step(step, memory) for step in steps])
        wanted = encoded_as_published(own, network.config, steps)
        with torch.inference_mode():
            projected = network.joint.enc(torch.from_numpy(found))
        assert len(projected) == len(wanted), name
        assert float((projected - wanted).abs().max()) < 1e-3, name


def test_streams_do_not_disturb_each_other(look_alikes: LookAlikes) -> None:
    """Two recordings step by step in turn on one backend, and then a third on a slot that was used before."""
    bundle = published(look_alikes.directory("sherpa"))
    expected = network_hears_all(look_alikes.network, bundle)
    backend = open_backend(bundle, 2)
    names = ["fsddstr_george_15.flac", "fsddstr_jackson_00.flac"]
    slots = [backend.open() for _ in names]
    with pytest.raises(CapacityError, match="all 2 slots are taken"):
        backend.open()
    streams = [
        steps_of(bundle, samples_of(AUDIO / name), slot) for name, slot in zip(names, slots, strict=True)
    ]
    tokens: list[list[tuple[int, int]]] = [[] for _ in names]
    number = 0
    while batch := [(row, step) for row, stream in enumerate(streams) if (step := next(stream, None))]:
        for (row, step), emissions in zip(batch, backend.step([step for _, step in batch]), strict=True):
            tokens[row] += [(step.frames * number + e.frame, e.token) for e in emissions]
        number += 1
    assert tokens == [expected[name].tokens for name in names]
    backend.close(slots[0])
    slot = backend.open()
    again = hear(
        bundle, lambda step: backend.step([step])[0], samples_of(AUDIO / "fsdd_jackson_7_0.flac"), slot
    )
    assert again.tokens == expected["fsdd_jackson_7_0.flac"].tokens
    backend.shut_down()


def test_a_last_step_may_be_shorter(look_alikes: LookAlikes) -> None:
    """What lies behind the end of the audio has no influence, whatever it is; every number of frames is right."""
    layout = describe(look_alikes.directory("soniqo-onnx"))
    encoder = WindowedEncoder(layout, OnnxGraph(layout.encoder.path))
    random = np.random.default_rng(0)
    mel = random.normal(-8.0, 3.0, (33, layout.mel.bins)).astype(np.float32)

    def run(mel: np.ndarray, end: int) -> np.ndarray:
        return encoder.step(StepInput(0, mel, begin=8, end=end), encoder.begin())

    whole = run(mel, 33)
    assert len(whole) == 4
    for end, frames in ((9, 1), (10, 2), (17, 2), (18, 3), (25, 3), (26, 4), (32, 4)):
        loud, quiet = mel.copy(), mel.copy()
        loud[end:], quiet[end:] = 50.0, -50.0
        found = run(loud, end)
        assert len(found) == frames, end
        np.testing.assert_array_equal(found, run(quiet, end))
        # Frame k sits on mel frame 8k + 8 of the step; it is complete with both frames of its attention chunk.
        complete = (end - 1) // 8 // 2 * 2
        np.testing.assert_allclose(found[:complete], whole[:complete], atol=1e-4)


def test_silence_before_the_stream_is_quiet(look_alikes: LookAlikes) -> None:
    """Zeros would be the loudest thing the network has ever heard, right before the first word."""
    layout = describe(look_alikes.directory("altunenes"))
    assert float(log_mel(np.zeros(1600, np.float32), layout.mel)[3, 0]) == pytest.approx(
        float(SILENCE), abs=1e-4
    )
    seen: list[np.ndarray] = []

    class Watched(OnnxGraph):
        def run(self, inputs):  # type: ignore[no-untyped-def]
            seen.append(inputs["audio_signal"])
            return super().run(inputs)

    encoder = WindowedEncoder(layout, Watched(layout.encoder.path))
    seen.clear()
    encoder.step(StepInput(0, np.zeros((17, layout.mel.bins), np.float32), begin=8, end=17), encoder.begin())
    assert (seen[0][0, :, :16] == SILENCE).all()
    assert (seen[0][0, :, 16:] == 0.0).all()


def test_steps_of_another_size_are_refused(look_alikes: LookAlikes) -> None:
    backend = open_backend(published(look_alikes.directory("soniqo-onnx")), 1)
    step = StepInput(backend.open(), np.zeros((17, 80), np.float32), begin=8, end=17)
    with pytest.raises(EngineError, match="a step of 2 encoder frames; this graph takes 4"):
        backend.step([step])


def test_larger_steps_where_windows_may_have_any_length(look_alikes: LookAlikes) -> None:
    """The same frames in any steps; a graph that only says so is run in its own step several times."""
    layout = describe(look_alikes.directory("altunenes"))
    assert layout.step_sizes == (2, 4, 8, 16)
    lengths: list[int] = []

    class Watched(OnnxGraph):
        def run(self, inputs):  # type: ignore[no-untyped-def]
            lengths.append(inputs["audio_signal"].shape[2])
            return super().run(inputs)

    class Stubborn(Watched):
        """As if the window's length were part of its masks."""

        def run(self, inputs):  # type: ignore[no-untyped-def]
            outputs = dict(super().run(inputs))
            if lengths[-1] > 41:
                outputs["outputs"] = outputs["outputs"] * 1.1
            return outputs

    mel = np.random.default_rng(0).normal(-8.0, 3.0, (129, layout.mel.bins)).astype(np.float32)
    results = []
    for kind, sizes in ((Watched, (16, 8, 4, 2)), (Stubborn, (4, 2))):
        encoder = WindowedEncoder(layout, kind(layout.encoder.path))
        encoder.sizes = equal_sizes(layout, encoder)
        assert encoder.sizes == sizes
        for frames in (16, 2):
            memory = encoder.begin()
            lengths.clear()
            parts = []
            for at in range(0, 16, frames):
                piece = mel[8 * at : 8 * (at + frames) + 1]
                parts.append(encoder.step(StepInput(0, piece, 0 if at else 8, len(piece)), memory))
            results.append(np.concatenate(parts))
            assert lengths == [9 + 8 * min(frames, sizes[0])] * (16 // min(frames, sizes[0]))
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=1e-3)
    shorter = encoder.step(StepInput(0, mel, begin=8, end=40), encoder.begin())
    assert len(shorter) == valid_frames(40)
    np.testing.assert_allclose(shorter[:4], results[0][:4], atol=1e-3)


def test_backend_choice_must_fit(look_alikes: LookAlikes) -> None:
    bundle = published(look_alikes.directory("altunenes"))
    assert isinstance(open_backend(bundle, 1, BackendChoice.ONNX), NemoOnnxBackend)
    with pytest.raises(
        EngineError, match="altunenes is a model for onnx, which the backend coreml does not run"
    ):
        open_backend(bundle, 1, BackendChoice.COREML)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"chunk_shift": "32"}, "window_size 25 and chunk_shift 32"),
        ({"normalize_type": "per_feature"}, "features normalised by recording"),
        ({"window_size": "many"}, "window_size and chunk_shift are not numbers"),
    ],
)
def test_metadata_of_another_network(
    look_alikes: LookAlikes, tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    directory = tmp_path / "sherpa"
    shutil.copytree(look_alikes.directory("sherpa"), directory)
    model = onnx.load(directory / "encoder.onnx")
    properties = {entry.key: entry.value for entry in model.metadata_props} | changes
    onnx.helper.set_model_props(model, properties)
    onnx.save(model, directory / "encoder.onnx")
    with pytest.raises(LayoutError, match=reason):
        load_model(directory)


def test_graphs_that_cannot_be_run(look_alikes: LookAlikes, tmp_path: Path) -> None:
    """Mel bands left free, and a number of them that the weights do not take."""
    directory = tmp_path / "altunenes"
    shutil.copytree(look_alikes.directory("altunenes"), directory)
    model = onnx.load(directory / "encoder.onnx")
    bands = model.graph.input[0].type.tensor_type.shape.dim[1]
    bands.dim_param = "bands"
    onnx.save(model, directory / "encoder.onnx")
    with pytest.raises(LayoutError, match="the number of mel bands is left free"):
        load_model(directory)
    bands.dim_value = 40
    onnx.save(model, directory / "encoder.onnx")
    with pytest.raises(EngineError, match=r"encoder\.onnx: ONNX Runtime cannot run it .*download it again"):
        network_of(published(directory))


def test_parts_of_different_models_are_refused(look_alikes: LookAlikes, tmp_path: Path) -> None:
    directory, other = tmp_path / "soniqo", tmp_path / "other"
    shutil.copytree(look_alikes.directory("soniqo-onnx"), directory)
    network = make_network(dataclasses.replace(CONFIG, vocabulary=len(look_alikes.pieces)))
    make_soniqo_onnx(network, look_alikes.pieces, other)
    shutil.copyfile(other / "parakeet-eou-joint.onnx", directory / "parakeet-eou-joint.onnx")
    with pytest.raises(EngineError, match="prediction network, joint and vocabulary do not fit each other"):
        network_of(published(directory))


def test_a_graph_that_hears_the_future_is_refused(look_alikes: LookAlikes, tmp_path: Path) -> None:
    """Attention chunks of eight frames: the four that are kept would depend on audio that has not come yet."""
    directory = tmp_path / "soniqo"
    shutil.copytree(look_alikes.directory("soniqo-onnx"), directory)
    sizes = {"mel_bins": look_alikes.network.config.mel_bins, "attention_left": 64, "attention_right": 7}
    network = make_network(dataclasses.replace(CONFIG, vocabulary=len(look_alikes.pieces), **sizes))
    make_loopback_encoder(network, look_alikes.pieces, directory, STREAMING, cache_drop=4)
    with pytest.raises(EngineError, match="the 4 encoder frames it keeps depend on audio behind them"):
        network_of(published(directory))


@pytest.mark.parametrize(
    ("pre_frames", "mel_frames", "cache_drop", "hop", "reason"),
    [
        (9, 33, 0, 4, r"remembers 5 encoder frames of a step \(400 ms\) but advances by 4 \(320 ms\)"),
        (9, 64, 0, 4, r"remembers 8 encoder frames of a step \(640 ms\) but advances by 4 \(320 ms\)"),
        (9, 24, 0, 3, "advances by 3 encoder frames, which breaks the network's attention chunks of 2"),
        (9, 64, 4, 4, None),
        (9, 32, 0, 4, None),
    ],
)
def test_cadences(
    look_alikes: LookAlikes,
    tmp_path: Path,
    pre_frames: int,
    mel_frames: int,
    cache_drop: int,
    hop: int,
    reason: str | None,
) -> None:
    """soniqo's graphs of 33 frames, one that forgets to drop, odd steps; the published one and the ideal one."""
    directory = tmp_path / "soniqo"
    shutil.copytree(look_alikes.directory("soniqo-onnx"), directory)
    streaming = {"melFrames": mel_frames, "preCacheSize": pre_frames, "outputFrames": hop}
    make_loopback_encoder(look_alikes.network, look_alikes.pieces, directory, streaming, cache_drop)
    bundle = published(directory)
    if reason is None:
        assert len(network_of(bundle).step(next(steps_of(bundle, samples_of(RECORDING))), True)) == 0
        return
    with pytest.raises(EngineError, match=reason) as refused:
        network_of(bundle)
    assert "melFrames 64 and outputFrames 4" in str(refused.value)
