"""The Core ML backend, its worker processes running packages of the embedded model through the interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.coreml import require_coremltools

require_coremltools()

from parakeet_live.audio.files import read_blocks  # noqa: E402
from parakeet_live.engine.backend import CapacityError, EngineError, StepInput  # noqa: E402
from parakeet_live.engine.backends import BackendChoice  # noqa: E402
from parakeet_live.engine.coreml.backend import CoremlBackend  # noqa: E402
from parakeet_live.engine.coreml.options import CoremlOptions  # noqa: E402
from parakeet_live.engine.offline import Transcriber  # noqa: E402
from parakeet_live.engine.recognizer import Recognizer  # noqa: E402
from parakeet_live.session.events import Event, Final, Partial  # noqa: E402
from parakeet_models.bundle import Bundle, embedded_bundle  # noqa: E402
from parakeet_models.mel import Float32  # noqa: E402
from support.scripted import PATIENT  # noqa: E402

DATA = Path(__file__).parents[1] / "data"
RECORDINGS = [
    DATA / row["audio"]
    for row in map(json.loads, (DATA / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
    if row["kind"] == "digit-string"
]


def speech(path: Path) -> Float32:
    """float32[n] at 16 kHz, with a second of silence behind it."""
    return np.concatenate([*read_blocks(path), np.zeros(16_000, np.float32)])


@pytest.fixture(scope="module")
def backend(interpreter: None, embedded_packages: Bundle) -> Iterator[CoremlBackend]:
    """Two replicas, two slots each."""
    opened = CoremlBackend(embedded_packages, 4, CoremlOptions(replicas=2), lambda line: None)
    yield opened
    opened.shut_down()


def said(events: Iterable[Event]) -> list[object]:
    """Everything but the confidences, whose last digits differ between runtimes."""
    return [
        (e.utterance, e.text, e.audio_ms, [(w.text, w.start_ms, w.end_ms) for w in e.words])
        if isinstance(e, Partial | Final)
        else e
        for e in events
    ]


@pytest.fixture(scope="module")
def expected() -> list[list[object]]:
    """What the embedded ONNX bundle makes of the recordings."""
    transcriber = Transcriber(embedded_bundle())
    return [said(transcriber.stream([speech(path)])) for path in RECORDINGS]


def test_words_and_times_equal_those_of_onnx(
    interpreter: None, embedded_packages: Bundle, expected: list[list[object]]
) -> None:
    transcriber = Transcriber(embedded_packages, backend=BackendChoice.COREML)
    assert [said(transcriber.stream([speech(path)])) for path in RECORDINGS] == expected
    assert sum(isinstance(event, tuple) for events in expected for event in events) > 10


async def recognise(recognizer: Recognizer, samples: Float32) -> list[Event]:
    stream = recognizer.open()
    stream.push(samples)
    stream.end()
    return [event async for event in stream]


async def test_streams_on_several_replicas_at_the_same_time(
    embedded_packages: Bundle, backend: CoremlBackend, expected: list[list[object]]
) -> None:
    async with Recognizer(embedded_packages, Shared(backend)) as recognizer:
        assert recognizer.lanes == 2
        audio = [speech(path) for path in RECORDINGS]
        results = await asyncio.gather(*(recognise(recognizer, samples) for samples in audio))
    assert [said(events) for events in results] == expected


class Shared:
    """A backend that outlives its recogniser."""

    def __init__(self, backend: CoremlBackend) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def shut_down(self) -> None:
        pass


def steps(bundle: Bundle, slot: int, count: int, seed: int) -> Iterator[StepInput]:
    rng = np.random.default_rng(seed)
    for index in range(count):
        mel = rng.normal(-8.0, 3.0, (17, bundle.manifest.mel.bins)).astype(np.float32)
        yield StepInput(slot, mel, 8 if index == 0 else 0, 17)


def test_slots_are_spread_over_the_replicas(backend: CoremlBackend) -> None:
    slots = [backend.open() for _ in range(4)]
    try:
        assert [backend.home_of(slot) for slot in slots] in ([0, 1, 0, 1], [1, 0, 1, 0])
        with pytest.raises(CapacityError, match="all 4 slots are taken"):
            backend.open()
    finally:
        for slot in slots:
            backend.close(slot)


def test_a_slot_is_reset_for_its_next_stream(embedded_packages: Bundle, backend: CoremlBackend) -> None:
    results = []
    for _ in range(2):
        slot = backend.open()
        results.append([backend.step([step])[0] for step in steps(embedded_packages, slot, 30, seed=4)])
        backend.close(slot)
    assert results[0] == results[1]


async def test_a_killed_worker_takes_its_own_streams_along_and_nobody_else(
    embedded_packages: Bundle, backend: CoremlBackend, expected: list[list[object]]
) -> None:
    audio = speech(RECORDINGS[0])
    async with Recognizer(embedded_packages, Shared(backend)) as recognizer:
        streams = [recognizer.open(PATIENT) for _ in range(4)]
        for stream in streams:
            stream.push(audio[: len(audio) // 2])
        for stream in streams:
            await stream.wait_below(500)
        killed = 0
        victim = backend.worker_pids[killed]
        os.kill(victim, signal.SIGKILL)
        for stream in streams:
            stream.push(audio[len(audio) // 2 :])
            stream.end()
        for stream in streams:
            if backend.home_of(stream.slot) == killed:
                with pytest.raises(EngineError, match=r"recognition process .*ended"):
                    _ = [event async for event in stream]
            else:
                assert said([event async for event in stream]) == expected[0]
        # The successor serves whoever comes next, on every slot.
        again = await asyncio.gather(*(recognise(recognizer, audio) for _ in range(4)))
        assert [said(events) for events in again] == [expected[0]] * 4
        assert victim not in backend.worker_pids


def test_a_worker_that_dies_idle_is_replaced_unnoticed(
    embedded_packages: Bundle, backend: CoremlBackend
) -> None:
    for pid in backend.worker_pids:
        os.kill(pid, signal.SIGKILL)
        wait_until_dead(pid)
    slot = backend.open()
    assert [backend.step([step]) for step in steps(embedded_packages, slot, 3, seed=0)]
    backend.close(slot)


def wait_until_dead(pid: int) -> None:
    """Dead, even if nobody has asked for its exit code yet."""
    while Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)


def test_a_step_that_fails_leaves_the_worker_alive(embedded_packages: Bundle, backend: CoremlBackend) -> None:
    slot = backend.open()
    before = backend.worker_pids
    mel = np.zeros((8 * 6 + 1, embedded_packages.manifest.mel.bins), np.float32)
    with pytest.raises(EngineError, match="KeyError: 6"):
        backend.step([StepInput(slot, mel, 0, len(mel))])
    assert backend.worker_pids == before
    backend.close(slot)


def test_workers_end_with_their_backend(interpreter: None, embedded_packages: Bundle) -> None:
    lines: list[str] = []
    backend = CoremlBackend(embedded_packages, 1, CoremlOptions(), lines.append)
    (pid,) = backend.worker_pids
    backend.shut_down()
    assert not Path(f"/proc/{pid}").exists()
    assert lines[0] == "starting the runtime"
    assert any(line.startswith("loaded encoder on CPU_AND_NE in ") for line in lines)
    assert "recognition process 1 of 1 is ready: 2 frames in " in lines[-1]
