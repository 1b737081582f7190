"""Loading, warming, ready, saturated, draining: what health checks and clients see of each."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web.app import build_app
from parakeet_live.web.lifecycle import Phase
from parakeet_live.web.run import Server
from parakeet_models.bundle import Bundle
from support.backends import BackendUnderTest
from support.in_process import listening, serving
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, http, session

PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()


async def get(url: str, path: str) -> httpx.Response:
    return await asyncio.to_thread(http, url, path)


async def status(url: str) -> tuple[int, str]:
    answer = await get(url, "/readyz")
    return answer.status_code, answer.json()["status"]


# Phases


async def test_a_loading_server_answers_health_checks_and_refuses_clients(random_bundle: Bundle) -> None:
    go_on = threading.Event()

    def load() -> Recognizer:
        go_on.wait()
        return Recognizer.load(random_bundle, max_streams=1)

    async with listening(build_app(load, Settings())) as (url, started):
        try:
            assert await status(url) == (503, "loading")
            health = await get(url, "/healthz")
            assert (health.status_code, health.json()["state"]) == (200, "loading")
            assert (await get(url, "/v1/stats")).status_code == 503
            outcome = await session(url, [])
            assert (outcome.messages[0]["code"], outcome.code) == ("not_ready", 503)
            assert "loading" in outcome.messages[0]["message"]
            assert not started.is_set()
        finally:
            go_on.set()
        await started.wait()
        assert await status(url) == (200, "ready")
        assert (await session(url, [PCM, END])).code == 1000


async def test_a_full_server_is_saturated_but_alive(random_bundle: Bundle) -> None:
    async with serving(Recognizer.load(random_bundle, max_streams=1)) as url:
        async with connect(url) as client:
            await client.recv()
            assert await status(url) == (503, "saturated")
            health = await get(url, "/healthz")
            assert (health.status_code, health.json()["state"]) == (200, "saturated")
        for _ in range(600):
            if await status(url) == (200, "ready"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError("still saturated 30 s after the client has gone")


async def test_health_checks_are_answered_while_every_stream_is_in_use(small_server_url: str) -> None:
    """Streams and 50 further clients must not starve the health check, which says full and not down."""
    async with AsyncExitStack() as stack:
        talkers = [await stack.enter_async_context(connect(small_server_url)) for _ in range(2)]
        for talker in talkers:
            await talker.recv()
        crowd = [asyncio.create_task(session(small_server_url, [])) for _ in range(50)]
        times = []
        for _ in range(5):
            for talker in talkers:
                await talker.send(PCM)
            asked = time.perf_counter()
            health = await get(small_server_url, "/healthz")
            times.append(time.perf_counter() - asked)
            assert (health.status_code, health.json()["state"]) == (200, "saturated")
            await asyncio.sleep(0.1)
        assert min(times) < 0.5, (
            "the bound of the field case; the machine of the test may be busy now and then"
        )
        refusals = await asyncio.gather(*crowd)
        assert {refusal.code for refusal in refusals} == {503}, "there is no queue"


async def test_a_draining_server_admits_nobody(random_bundle: Bundle) -> None:
    app = build_app(lambda: Recognizer.load(random_bundle, max_streams=1), Settings(warm_up=False))
    async with listening(app) as (url, started):
        await started.wait()
        app.state.lifecycle.stop_admitting()
        assert await status(url) == (503, "draining")
        assert (await get(url, "/healthz")).status_code == 200
        outcome = await session(url, [])
        assert (outcome.messages[0]["code"], outcome.code) == ("draining", 503)


async def test_a_model_that_cannot_be_loaded_stops_the_server(random_bundle: Bundle) -> None:
    def load() -> Recognizer:
        raise EngineError("no such accelerator")

    app = build_app(load, Settings())
    server = Server(app, Settings(), lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await server.serve(sockets=[listener])
    assert str(server.failure) == "no such accelerator"
    assert app.state.lifecycle.phase is Phase.DRAINING


# Warm-up


class CountingBackend(BackendUnderTest):
    """Notes what it was asked to run."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        super().__init__(bundle, slots)
        self.ran: list[tuple[int, tuple[int, ...]]] = []
        """(encoder frames, slots) of every batch."""
        self.emitted = 0

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        result = super().step(inputs)
        self.ran.append((inputs[0].frames, tuple(step.slot for step in inputs)))
        self.emitted += sum(map(len, result))
        return result


async def test_warm_up_runs_every_step_size_and_every_slot_with_speech(random_bundle: Bundle) -> None:
    backend = CountingBackend(random_bundle, 5)
    recognizer = Recognizer(random_bundle, backend, lanes=1, max_batch=4)
    backend.ran.clear()
    app = build_app(lambda: recognizer, Settings())
    async with listening(app) as (url, started):
        await started.wait()
        sizes = random_bundle.manifest.step_sizes
        assert {frames for frames, _ in backend.ran} == set(sizes)
        for frames in sizes:
            batches = {len(slots) for size, slots in backend.ran if size == frames}
            assert {1, max(1, 4 * sizes[0] // frames)} <= batches
        # A slot that this machine is too slow to use, because it is busy now, is left alone.
        usable = max(4, min(5, app.state.lifecycle.capacity.streams))
        assert {slot for _, slots in backend.ran for slot in slots} == set(range(usable))
        assert backend.emitted > 0
        assert recognizer.active_streams == 0
        capacity = app.state.lifecycle.capacity
        assert 0 < capacity.real_time_factor < 1
        assert (await get(url, "/v1/stats")).json()["streams"]["suggested_max"] == capacity.streams > 0


async def first_partial(url: str) -> float:
    """Seconds from the first audio to the first partial."""
    async with connect(url, compression=None) as client:
        await client.recv()
        started = time.perf_counter()
        await client.send(PCM)
        await client.recv()
        return time.perf_counter() - started


@pytest.mark.onnx_only("compares times")
async def test_the_first_session_is_as_fast_as_later_ones(random_bundle: Bundle, tmp_path: Path) -> None:
    """The bound is that of the field case; a busy machine gets three tries."""
    ratios = []
    for attempt in range(3):
        with running_server(tmp_path / f"log{attempt}", "--model", str(random_bundle.directory)) as url:
            times = [await first_partial(url) for _ in range(20)]
        ratios.append(times[0] / sorted(times[1:])[9])
        if ratios[-1] < 2:
            return
    raise AssertionError(f"first session against the median of later ones: {ratios}")


class SlowBackend(BackendUnderTest):
    """Takes longer for a step than the step's audio lasts, as a model on too small a machine does."""

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        time.sleep(0.2)
        return super().step(inputs)


async def test_a_machine_that_is_too_slow_says_so_at_start(
    random_bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    recognizer = Recognizer(random_bundle, SlowBackend(random_bundle, 1), lanes=1, max_batch=1)
    app = build_app(lambda: recognizer, Settings())
    async with listening(app) as (_, started):
        await started.wait()
    assert app.state.lifecycle.capacity.real_time_factor > 1
    assert app.state.lifecycle.capacity.streams == 0
    assert "measured: real-time factor" in caplog.text
    assert "too slow for this model" in caplog.text


class SlowableBackend(BackendUnderTest):
    """As on a machine that gets busy with other work."""

    busy = False

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        if self.busy:
            time.sleep(1.0)
        return super().step(inputs)


async def test_a_machine_that_becomes_too_slow_says_so_to_all_whom_it_concerns(random_bundle: Bundle) -> None:
    backend = SlowableBackend(random_bundle, 2)
    recognizer = Recognizer(random_bundle, backend, lanes=1, max_batch=1)
    async with serving(recognizer, Settings(max_streams=2, warm_up=False)) as url:
        assert await status(url) == (200, "ready")
        async with connect(url, compression=None, max_queue=None) as client:

            async def talk() -> None:
                while True:
                    await client.send(PCM[:3200])
                    await asyncio.sleep(0.1)

            backend.busy = True
            talking = asyncio.create_task(talk())
            warning: dict[str, Any] = {}
            while warning.get("code") != "lagging":
                warning = json.loads(await client.recv())
            assert warning["details"]["lag_ms"] >= 1000
            await until_status(url, (503, "saturated"))
            health = (await get(url, "/healthz")).json()
            assert (health["active_streams"], health["estimated_streams_left"]) == (1, 0)
            assert "parakeet_live_overloaded 1.0" in (await get(url, "/metrics")).text
            talking.cancel()
            backend.busy = False
            await until_status(url, (200, "ready"))
            assert (await get(url, "/healthz")).json()["estimated_streams_left"] == 1
            assert "parakeet_live_overloaded 0.0" in (await get(url, "/metrics")).text


async def until_status(url: str, wanted: tuple[int, str]) -> None:
    for _ in range(600):
        if await status(url) == wanted:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{await status(url)} 30 s later")


@pytest.mark.onnx_only("counts on a step that takes no time")
async def test_a_pool_that_is_too_large_is_pointed_out(
    random_bundle: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    class Backend(BackendUnderTest):
        def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
            time.sleep(0.05 * len(inputs))
            return super().step(inputs)

    recognizer = Recognizer(random_bundle, Backend(random_bundle, 8), lanes=1, max_batch=2)
    async with listening(build_app(lambda: recognizer, Settings(max_streams=8))) as (_, started):
        await started.wait()
    assert re.search("max_streams is 8, but this machine carries about [12] live streams", caplog.text)
