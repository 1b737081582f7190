"""Faults on our side and clients that do not read: told where possible, and every stream is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fastapi import WebSocket
from websockets.asyncio.client import connect

from parakeet_live.dialects.native import Action, NativeSession
from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web import stream
from parakeet_models.bundle import Bundle
from support.backends import BackendUnderTest
from support.in_process import serving
from support.random_bundle import noise
from support.sockets import END, Outcome, session, wait_until_idle

PCM = (noise(4.0, 1) * 32767).astype("<i2").tobytes()


class FailingBackend(BackendUnderTest):
    """Fails on a step as long as it is told to, as a broken accelerator would."""

    broken = False

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        if self.broken:
            raise RuntimeError("the accelerator is gone")
        return super().step(inputs)


def last_error(outcome: Outcome) -> tuple[str, bool, int | None, str | None]:
    message = outcome.messages[-1]
    return message["code"], message["fatal"], outcome.code, outcome.reason


async def test_an_engine_failure_is_told_and_the_next_client_is_served(random_bundle: Bundle) -> None:
    backend = FailingBackend(random_bundle, 1)
    async with serving(Recognizer(random_bundle, backend)) as url:
        backend.broken = True
        outcome = await session(url, [PCM, END])
        assert last_error(outcome) == ("engine_failed", True, 1011, "engine_failed")
        backend.broken = False
        await wait_until_idle(url)
        assert (await session(url, [PCM, END])).code == 1000


async def test_a_fault_in_a_session_is_told_and_logged(
    random_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: NativeSession, data: bytes) -> list[Action]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(NativeSession, "receive_bytes", fail)
    async with serving(Recognizer.load(random_bundle, max_streams=1)) as url:
        assert last_error(await session(url, [PCM])) == ("internal_error", True, 1011, "internal_error")
        assert (await session(url, [END])).code == 1000
    assert "a bug" in caplog.text


async def test_a_client_that_never_reads_is_given_up(
    random_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def blocked(websocket: WebSocket, text: str) -> None:
        """A send to a client whose receive buffer is full; real buffers take megabytes of results."""
        await asyncio.Event().wait()

    monkeypatch.setattr(stream, "_send", blocked)
    settings = Settings(warm_up=False, max_unsent_messages=3, close_timeout_s=0.1)
    caplog.set_level("INFO")
    async with (
        serving(Recognizer.load(random_bundle, max_streams=1), settings) as url,
        connect(url, compression=None) as client,
    ):
        await client.send(PCM)
        await client.wait_closed()
        await wait_until_idle(url)
    assert "did not take the last messages in time" in caplog.text
