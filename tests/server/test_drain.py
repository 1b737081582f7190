"""SIGTERM and SIGINT: nobody is admitted, everybody gets what was recognised, and the server ends in time."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from support.server_process import COMMAND, LINE_START
from support.sockets import Outcome, read_all, session
from support.speech import spoken_pcm

STREAMS = 4
DRAIN_SECONDS = 20


@contextmanager
def server(tmp_path: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    command = [
        str(COMMAND),
        "serve",
        "--port",
        "0",
        "--no-warm-up",
        "--drain-s",
        str(DRAIN_SECONDS),
        *options,
    ]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith(LINE_START), (tmp_path / "log").read_text()
        try:
            yield line.removeprefix(LINE_START).strip(), process
        finally:
            process.kill()


async def talk(url: str, pcm: bytes, started: asyncio.Semaphore) -> Outcome:
    """Speak without ever saying that it is over."""
    async with connect(url, compression=None, max_queue=None) as client:
        reader = asyncio.create_task(read_all(client))
        try:
            await client.send(pcm)
            started.release()
            while not reader.done():
                await client.send(bytes(640))
                await asyncio.sleep(0.02)
        except WebSocketException:
            pass
        return await reader


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_full_pool_in_mid_speech_gets_its_finals(
    tmp_path: Path, embedded_options: tuple[str, ...], number: signal.Signals
) -> None:
    clips = [spoken_pcm(1, n)[: -2 * 16_000] for n in range(STREAMS)]  # cut off behind the last word
    with server(tmp_path, "--max-streams", str(STREAMS), *embedded_options) as (url, process):
        alone = [(await session(url, [clip, '{"type":"end"}'])).texts for clip in clips]
        started = asyncio.Semaphore(0)
        talking = [asyncio.create_task(talk(url, clip, started)) for clip in clips]
        for _ in clips:
            await started.acquire()
        await asyncio.sleep(1)
        process.send_signal(number)
        outcomes = await asyncio.gather(*talking)
        exit_code = await asyncio.to_thread(process.wait, DRAIN_SECONDS + 10)
    assert exit_code == 0
    for outcome, texts in zip(outcomes, alone, strict=True):
        assert (outcome.code, outcome.reason) == (1001, "draining")
        assert "draining" in [message["code"] for message in outcome.of("warning")]
        assert (outcome.messages[-1]["type"], outcome.messages[-1]["reason"]) == ("done", "draining")
        # Silence followed the words, so they may have been divided otherwise, but all of them are there.
        assert " ".join(outcome.texts).split() == " ".join(texts).split()
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert " ERROR " not in log


async def test_a_draining_server_refuses_and_a_second_signal_ends_it(
    tmp_path: Path, embedded_options: tuple[str, ...]
) -> None:
    with server(tmp_path, "--max-streams", "2", *embedded_options) as (url, process):
        async with connect(url) as client:
            await client.recv()
            await client.send(spoken_pcm())
            client.transport.abort()  # who may come back is waited for
        process.send_signal(signal.SIGINT)
        outcome = Outcome([{"type": ""}], None, None)
        while outcome.messages[-1]["type"] != "error":
            outcome = await session(url, ['{"type":"end"}'])
        assert (outcome.messages[-1]["code"], outcome.code) == ("draining", 503)
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 10) == 0
