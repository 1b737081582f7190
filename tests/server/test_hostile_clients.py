"""Clients that send senseless frames, come and go, or break off: the server serves on and keeps nothing of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from websockets.asyncio.client import connect

from parakeet_models.bundle import Bundle
from parakeet_models.random_weights.signal import speech_like
from support.fuzz import Fuzzer
from support.server_process import running_server
from support.sockets import END, read_all

AUDIO = (np.clip(speech_like(2, seed=1), -1, 1) * 32767).astype("<i2").tobytes()


@pytest.fixture
def server(tmp_path: Path, random_bundle: Bundle) -> Iterator[tuple[str, psutil.Process]]:
    """A server of its own and its process; it must have logged no error in the end."""
    before = {child.pid for child in psutil.Process().children()}
    options = ("--model", str(random_bundle.directory), "--max-streams", "16", "--resume-window-s", "0")
    with running_server(tmp_path / "log", *options) as url:
        (process,) = (child for child in psutil.Process().children() if child.pid not in before)
        yield url, process


async def transcript(url: str) -> list[str]:
    async with connect(url) as socket:
        await socket.send(AUDIO)
        await socket.send(END)
        outcome = await read_all(socket)
    assert outcome.code == 1000
    return outcome.texts


async def idle(url: str) -> None:
    """Return once no stream is open."""
    health = url.replace("ws://", "http://", 1).removesuffix("v1/stream") + "healthz"
    async with httpx.AsyncClient() as client:
        for _ in range(300):
            if (await client.get(health)).json()["active_streams"] == 0:
                return
            await asyncio.sleep(0.1)
    pytest.fail("streams are still open")


async def test_senseless_frames(server: tuple[str, psutil.Process]) -> None:
    url, _ = server
    expected = await transcript(url)
    fuzzer = Fuzzer(url, seed=1)
    await fuzzer.run(6000, connections=6)
    assert fuzzer.sent >= 6000
    assert fuzzer.endings["not read by the server"] == 0
    assert fuzzer.endings["closed by the server"] > 10
    await idle(url)
    assert await transcript(url) == expected


async def test_senseless_bytes_instead_of_http(server: tuple[str, psutil.Process]) -> None:
    url, _ = server
    host, port = url.split("/")[2].split(":")
    for data in (
        b"\x00" * 5000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
        b"\x16\x03\x01\x02\x00",
        b"\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(2):
                await reader.read()
        writer.transport.abort()
    assert json.loads((await fetch(url, "healthz")).text)["status"] == "ok"


async def fetch(url: str, page: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(url.replace("ws://", "http://", 1).removesuffix("v1/stream") + page)


async def come_and_go(url: str, rounds: int) -> None:
    """Sessions that end in every way there is."""
    for number in range(rounds):
        async with connect(url) as socket:
            await socket.send(AUDIO[: 3200 * (number % 4)])
            match number % 4:
                case 0:
                    await socket.send(END)
                    await read_all(socket)
                case 1:
                    await socket.close(1000)
                case 2:
                    socket.transport.abort()
                case 3:
                    await socket.close(1001)


async def test_five_hundred_clients_leave_nothing_behind(server: tuple[str, psutil.Process]) -> None:
    url, process = server
    await asyncio.gather(*(come_and_go(url, 15) for _ in range(8)))
    await idle(url)
    before = process.memory_info().rss, process.num_fds(), process.num_threads()
    await asyncio.gather(*(come_and_go(url, 64) for _ in range(8)))
    await idle(url)
    after = process.memory_info().rss, process.num_fds(), process.num_threads()
    # A lane's thread may have started late, and a last socket be on its way out; 512 clients left none.
    assert after[1] <= before[1] + 2
    assert after[2] <= before[2] + 2
    assert after[0] < 1.05 * before[0]
