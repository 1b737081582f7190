"""The benchmark's bookkeeping as pure functions, and real short runs. How fast anything is, is never asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from parakeet_live.access.keys import new_key, write_key_file
from parakeet_live.bench.linear import fit_line
from parakeet_live.bench.load import StreamLog
from parakeet_live.bench.report import linearity, memory_per_extra_stream
from parakeet_live.bench.results import Latency, Quantiles, lag_growth_ms, quantiles, read_log, sent_at
from parakeet_live.bench.run import Run
from parakeet_live.bench.search import RESOLUTION, search_largest, shortcomings
from parakeet_live.bench.tracks import encode, make_tracks
from parakeet_models.bundle import Bundle
from support.server_process import running_server
from support.sockets import http

ROOT = Path(__file__).parents[2]
TIMEOUT = 180
"""Seconds after which a command that hangs is a failure."""


def a_run(streams: int, **figures: Any) -> Run:
    """A run in which all is well."""
    fields: dict[str, Any] = {
        "window_seconds": 20.0,
        "server_cpu_per_stream": 0.02,
        "generator_cpu_per_stream": 0.001,
        "other_cpu_cores": 0.0,
        "partial_latency_ms": Quantiles(100, 150.0, 140.0, 250.0, 300.0, 320.0),
        "final_latency_ms": Quantiles(0),
        "batch_size": None,
        "batch_ms": None,
        "queue_ms": None,
        "loop_delay_ms": None,
        "step_cost_ms": None,
        "lane_load": None,
        "largest_backlog_ms": None,
        "lag_growth_ms": 10.0,
        "drain_ms": Quantiles(0),
        "send_delay_ms": Quantiles(0),
        "rss_idle_mb": 100.0,
        "rss_mb": 100.0 + 5 * streams,
        "memory_mb_per_stream": 5.0,
        "failed_streams": 0,
        "problems": {},
        "finals": 1,
        "words": 1,
        "streams_differing": 0,
        "transcripts_equal": True,
    }
    return Run(streams=streams, **{**fields, **figures})


def message(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, **fields})


@pytest.mark.parametrize(
    ("audio_ms", "frame"), [(0, 0), (1, 0), (100, 0), (101, 1), (200, 1), (250, 2), (300, 2), (9999, 2)]
)
def test_audio_was_sent_with_the_frame_that_holds_its_last_sample(audio_ms: int, frame: int) -> None:
    sent = [10.0, 10.1, 10.2]
    assert sent_at(sent, 100, audio_ms) == sent[frame]


def test_a_log_becomes_latencies_and_a_transcript() -> None:
    words = [{"text": "two", "start_ms": 40, "end_ms": 120, "confidence": 0.9}]
    result = {"utterance": 0, "text": "two", "words": words}
    log = StreamLog(track=0, frame_ms=100, start=10.0, sent=[10.0, 10.1, 10.2])
    log.received = [
        (10.15, message("partial", audio_ms=120, **result)),
        (10.25, message("final", audio_ms=200, reason="eou", **result)),
        (10.50, message("final", audio_ms=300, reason="end", **result)),
        (10.60, message("done", audio_ms=300, utterances=2)),
    ]
    read = read_log(log)
    assert read.partials == (Latency(10.1, pytest.approx(50.0)),)
    assert read.finals == (Latency(10.1, pytest.approx(150.0)),), (
        "the end of the stream is no reaction to speech"
    )
    assert read.transcript == (("two", (("two", 40, 120),)),) * 2
    assert read.drain_ms == pytest.approx(400.0)
    assert read.problem == ""


def test_a_stream_without_an_end_has_a_problem() -> None:
    log = StreamLog(track=0, frame_ms=100, sent=[1.0])
    assert read_log(log).problem == "closed before the end"
    log.received.append((1.5, message("error", code="server_full", message="later", fatal=True)))
    assert read_log(log).problem == "server_full: later"


def test_frames_are_due_at_times_that_never_drift() -> None:
    log = StreamLog(track=0, frame_ms=20, start=100.0, sent=[100.4, 100.5])
    assert log.due(2) == pytest.approx(100.04)
    assert log.due(1_000_000) == pytest.approx(20_100.0)


def test_quantiles_of_nothing_and_of_something() -> None:
    assert quantiles([]) == Quantiles(0, None, None, None, None, None)
    assert quantiles(range(1, 102)) == Quantiles(101, 51.0, 51.0, 96.0, 100.0, 101.0)


def test_growth_of_lag_compares_the_ends_of_the_window() -> None:
    def latencies(ms: list[float]) -> list[Latency]:
        return [Latency(float(second), value) for second, value in enumerate(ms)]

    assert lag_growth_ms(latencies([100, 120, 500, 110]), 0.0, 4.0) == 10.0
    assert lag_growth_ms(latencies([100, 300, 500, 700]), 0.0, 4.0) == 600.0
    assert lag_growth_ms(latencies([100, 300, 500]), 0.0, 4.0) is None


def test_a_run_is_held_or_says_why_not() -> None:
    slow = Quantiles(9, 500.0, 500.0, 500.0, 500.0, 500.0)
    assert shortcomings(a_run(8), 500.0) == []
    assert shortcomings(a_run(8, partial_latency_ms=slow), 500.0) == ["p95 partial latency 500 ms"]
    assert shortcomings(a_run(8, partial_latency_ms=Quantiles(0)), 500.0) == ["no partials came"]
    assert shortcomings(a_run(8, failed_streams=2, lag_growth_ms=900.0), 500.0) == [
        "2 streams failed",
        "lag grew by 900 ms",
    ]


@given(largest=st.integers(0, 500), start=st.integers(1, 100), trials=st.integers(1, 30))
def test_the_search_never_claims_too_much_and_stays_within_its_trials(
    largest: int, start: int, trials: int
) -> None:
    asked: list[int] = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number <= largest

    found = search_largest(holds, start, trials)
    assert found <= largest
    assert found == 0 or found in asked
    assert len(asked) == len(set(asked)) <= trials
    if trials == 30:
        assert largest - found < max(1, largest / RESOLUTION + 1)


def test_linear_cost_has_no_deviation_and_a_fixed_cost_shows() -> None:
    assert linearity([a_run(n, server_cpu_per_stream=0.02) for n in (1, 8, 32, 64)]) == 0.0
    # 0.2 cores whatever the streams: together 0.36 cores at 8 streams and 1.48 at 64.
    points = [(n, 0.02 + 0.2 / n) for n in (1, 8, 64, 128)]
    line = fit_line(points)
    assert line is not None
    assert line.slope == pytest.approx((8 * 0.36 + 64 * 1.48) / (8 * 8 + 64 * 64))
    assert line.deviations == (
        (8, pytest.approx(0.36 / (8 * line.slope) - 1)),
        (64, pytest.approx(1.48 / (64 * line.slope) - 1)),
    )
    assert line.largest_deviation == line.deviations[0][1], "it weighs most where the streams are few"


def test_a_line_needs_two_points() -> None:
    assert linearity([a_run(1), a_run(8), a_run(128)]) is None
    assert linearity([a_run(8), a_run(16, server_cpu_per_stream=None)]) is None


def test_memory_of_an_extra_stream_is_the_slope() -> None:
    runs = [a_run(8, rss_mb=140.0), a_run(64, rss_mb=420.0), a_run(1, rss_mb=105.0)]
    assert memory_per_extra_stream(runs) == 5.0
    assert memory_per_extra_stream(runs[:1]) is None
    assert memory_per_extra_stream([a_run(1, rss_mb=None), a_run(8)]) is None


def test_tracks_are_reproducible_and_differ() -> None:
    recording = np.arange(1, 20_001, dtype=np.int16)
    made = [make_tracks([recording], count=3, seconds=2.05, frame_ms=100, seed=7) for _ in range(2)]
    tracks, again = ([payload(track.frames) for track in tracks] for tracks in made)
    assert tracks == again
    assert len(set(tracks)) == 3
    assert {len(track) for track in tracks} == {2 * 21 * 1600}


def test_a_frame_is_a_websocket_message_with_its_samples() -> None:
    samples = np.arange(3200, dtype=np.int16)
    track = encode(samples, frame_ms=100)
    assert len(track.frames) == 2
    assert payload(track.frames) == samples.tobytes()


def payload(frames: tuple[bytes, ...]) -> bytes:
    """What a server reads from these bytes of a socket."""
    server = ServerProtocol(state=State.OPEN)
    server.receive_data(b"".join(frames))
    received = server.events_received()
    assert all(isinstance(frame, Frame) and frame.opcode is Opcode.BINARY for frame in received)
    return b"".join(bytes(frame.data) for frame in received if isinstance(frame, Frame))


def bench(path: Path, *options: str) -> dict[str, Any]:
    """The JSON document of a real run."""
    command = [
        sys.executable,
        "-m",
        "parakeet_live",
        "bench",
        "--warm-up",
        "0.5",
        "--json",
        str(path),
        *options,
    ]
    result = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, text=True)
    assert result.returncode == 0, result.stderr
    assert "transcripts as alone" in result.stdout
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_real_run_is_complete(tmp_path: Path, random_bundle: Bundle) -> None:
    document = bench(
        tmp_path / "run.json", "--sweep", "1,2", "--seconds", "2", "--model", str(random_bundle.directory)
    )
    assert document["format"] == 1
    assert document["model"]["weights_origin"] == "random"
    assert document["machine"]["usable_cores"] >= 1
    assert document["settings"]["frame_ms"] == 100
    assert isinstance(document["memory_mb_per_extra_stream"], float)
    assert document["linearity_8_64"] is None
    assert document["max_streams"] is None
    assert [run["streams"] for run in document["runs"]] == [1, 2]
    for run in document["runs"]:
        assert run["failed_streams"] == 0, run["problems"]
        assert run["problems"] == {}
        assert run["transcripts_equal"] is True
        assert run["streams_differing"] == 0
        assert run["words"] > 0
        for name in ("server_cpu_per_stream", "generator_cpu_per_stream", "rss_mb", "window_seconds"):
            assert run[name] > 0, name
        for name in ("partial_latency_ms", "batch_size", "batch_ms", "loop_delay_ms", "drain_ms"):
            assert run[name]["count"] > 0, name
            assert 0 <= run[name]["p50"] <= run[name]["p95"] <= run[name]["p99"] <= run[name]["max"], name
        assert run["drain_ms"]["count"] == run["streams"]

    command = [
        sys.executable,
        "-m",
        "benchmarks.plot",
        str(tmp_path / "run.json"),
        "--out",
        str(tmp_path / "plots"),
    ]
    subprocess.run(command, check=True, timeout=TIMEOUT, cwd=ROOT)
    plots = sorted((tmp_path / "plots").iterdir())
    assert [plot.name for plot in plots] == ["cost-streams.svg", "streams-latency.svg"]
    assert all(plot.read_text().startswith("<?xml") for plot in plots)


def test_a_running_server_is_measured_as_far_as_it_can_be(tmp_path: Path, babble_url: str) -> None:
    document = bench(tmp_path / "run.json", "--streams", "2", "--seconds", "1", "--url", babble_url)
    (run,) = document["runs"]
    assert document["model"] is None
    assert run["transcripts_equal"] is True
    assert run["failed_streams"] == 0
    assert run["batch_ms"]["count"] > 0
    assert run["server_cpu_per_stream"] is None
    assert run["rss_mb"] is None


def test_a_server_that_wants_a_key_gets_it(tmp_path: Path, random_bundle: Bundle) -> None:
    key, record = new_key("bench")
    write_key_file(tmp_path / "keys.json", [record])
    options = ("--model", str(random_bundle.directory), "--keys-file", str(tmp_path / "keys.json"))
    load = ("--streams", "1", "--seconds", "1", "--warm-up", "0")
    with running_server(tmp_path / "log", *options) as url:
        (run,) = bench(tmp_path / "run.json", *load, "--url", url, "--key", key)["runs"]
        command = [sys.executable, "-m", "parakeet_live", "bench", *load, "--url", url]
        refused = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, text=True)
    assert run["failed_streams"] == 0
    assert run["batch_ms"]["count"] > 0
    assert refused.returncode == 1
    assert "a single stream failed: unauthorized: this server needs a key" in refused.stderr


def test_the_server_tells_its_statistics(babble_url: str) -> None:
    stats = http(babble_url, "/v1/stats").json()
    assert stats["streams"]["max"] == 64
    assert stats["lanes"] >= 1
    assert stats["step_cost_ms"] > 0
    engine = stats["engine"]
    assert engine["failures"] == 0
    for name in ("batch_size", "batch_ms", "queue_ms", "loop_delay_ms"):
        assert len(engine[name]["counts"]) == len(engine[name]["bounds"]) + 1
        assert engine[name]["count"] == sum(engine[name]["counts"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sweep", "1,x"], "whole numbers"),
        (["--sweep", "1", "--find-max"], "choose one"),
        (["--url", "http://localhost"], "ws://"),
        (["--url", "ws://127.0.0.1:9"], "a single stream failed"),
        (["--audio", "missing.wav", "--url", "ws://127.0.0.1:9"], "no such file"),
    ],
)
def test_mistakes_are_explained(options: list[str], message: str) -> None:
    command = [sys.executable, "-m", "parakeet_live", "bench", *options]
    result = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False, text=True)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
