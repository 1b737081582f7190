"""Turns over a real socket with the embedded model: commands, their answers, and clients that stop sending."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from websockets.asyncio.client import ClientConnection, connect

from parakeet_live.dialects.messages import SERVER_MESSAGE
from parakeet_models.mel import Float32
from support.server_process import running_server
from support.sockets import END, Message, Outcome, cut, session

DATA = Path(__file__).parents[1] / "data"
ROWS = [json.loads(line) for line in (DATA / "manifest.jsonl").open(encoding="utf-8")]
FINALIZE = '{"type":"finalize"}'
CANCEL = '{"type":"cancel"}'
SECOND = 32_000
"""Bytes."""


def pcm16(samples: Float32) -> bytes:
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()


def clip(name: str) -> bytes:
    (row,) = (row for row in ROWS if row["id"] == name)
    return pcm16(soundfile.read(DATA / row["audio"], dtype="float32")[0])


FIVES = clip("fsddstr_jackson_00")
SEVENS = clip("fsddstr_george_15")
CUT_OFF = SEVENS[: 26 * SECOND // 10]
"""SEVENS up to shortly after its last word."""


@asynccontextmanager
async def talking(url: str) -> AsyncIterator[ClientConnection]:
    async with connect(url, max_queue=None, compression=None) as socket:
        yield socket


async def until(socket: ClientConnection, kind: str) -> list[Message]:
    """Messages up to the first of this kind. Fails after half a minute."""
    messages: list[Message] = []
    async with asyncio.timeout(30):
        while not messages or messages[-1]["type"] != kind:
            messages.append(json.loads(await socket.recv()))
            SERVER_MESSAGE.validate_python(messages[-1])
    return messages


def kinds(outcome: Outcome) -> list[str]:
    """Types of the results in order, partials left out."""
    return [m["type"] for m in outcome.messages if m["type"] not in ("ready", "partial", "ack")]


def texts_of(messages: list[Message]) -> list[str]:
    return [message["text"] for message in messages if message["type"] == "final"]


async def text_alone(url: str, audio: bytes) -> str:
    outcome = await session(url, [audio, bytes(2 * SECOND), END])
    return " ".join(outcome.texts)


async def test_an_eager_end_comes_before_its_final(server_url: str) -> None:
    outcome = await session(f"{server_url}?speech_started=true", [*cut(FIVES, 640), bytes(2 * SECOND), END])
    assert kinds(outcome) == ["speech_started", "eou", "final", "done"]
    (eou,), (final,) = outcome.of("eou"), outcome.of("final")
    assert eou["utterance"] == final["utterance"]
    assert eou["audio_ms"] == final["eou_ms"] <= final["commit_ms"] == final["audio_ms"]
    assert final["speech_end_ms"] == final["words"][-1]["end_ms"]
    numbers = [message["seq"] for message in outcome.messages if message.get("seq")]
    assert numbers == sorted(set(numbers))


async def test_a_cancelled_turn_leaves_no_word_in_the_next(server_url: str) -> None:
    outcome = await session(
        server_url, [*cut(FIVES, 3200), CANCEL, *cut(SEVENS, 3200), bytes(2 * SECOND), END]
    )
    assert outcome.texts == [await text_alone(server_url, SEVENS)]
    (cancelled,) = outcome.of("cancelled")
    assert cancelled["audio_ms"] == len(FIVES) // 32
    (final,) = outcome.of("final")
    assert final["words"][0]["start_ms"] >= cancelled["audio_ms"]
    after = outcome.messages[outcome.messages.index(cancelled) :]
    assert all(message["utterance"] == final["utterance"] for message in after if "utterance" in message)


async def test_finalize_is_answered_at_once_and_never_by_a_copy(server_url: str) -> None:
    async with talking(server_url) as socket:
        await socket.send(FINALIZE)
        assert texts_of(await until(socket, "final")) == [""]
        await socket.send(SEVENS + bytes(2 * SECOND))
        (text,) = texts_of(await until(socket, "final"))
        assert text
        for _ in range(2):
            await socket.send(FINALIZE)
            final = (await until(socket, "final"))[-1]
            assert (final["reason"], final["text"], final["words"]) == ("finalize", "", [])
        await socket.send(END)
        assert texts_of(await until(socket, "done")) == []


async def test_the_end_right_after_a_natural_final_carries_no_text(server_url: str) -> None:
    async with talking(server_url) as socket:
        await socket.send(SEVENS + bytes(SECOND))
        final = (await until(socket, "final"))[-1]
        assert final["reason"] == "eou"
        await socket.send(END)
        rest = await until(socket, "done")
        assert [message["type"] for message in rest if message["type"] != "ack"] == ["done"]
        assert "text" not in rest[-1]


async def test_without_audio_the_last_word_comes_by_itself_and_the_stream_goes_on(server_url: str) -> None:
    expected = await text_alone(server_url, CUT_OFF)
    async with talking(f"{server_url}?no_audio_ms=500") as socket:
        for _ in range(2):
            await socket.send(CUT_OFF)
            final = (await until(socket, "final"))[-1]
            assert (final["text"], final["reason"]) == (expected, "no_audio")
        await socket.send(END)
        assert texts_of(await until(socket, "done")) == []


async def test_pauses_within_the_wall_clock_limit_change_nothing(server_url: str) -> None:
    expected = await text_alone(server_url, SEVENS)
    async with talking(server_url) as socket:
        await socket.send(SEVENS[: len(SEVENS) // 2])
        await asyncio.sleep(0.5)
        await socket.send(SEVENS[len(SEVENS) // 2 :] + bytes(2 * SECOND))
        assert texts_of(await until(socket, "final")) == [expected]


async def test_configure_is_answered_and_changes_what_comes_after_it(server_url: str) -> None:
    change = '{"type":"configure","endpointing":"dictation","eou_silence_ms":1500}'
    async with talking(server_url) as socket:
        await socket.send(SEVENS + bytes(2 * SECOND))
        before = (await until(socket, "final"))[-1]
        await socket.send(change)
        answer = (await until(socket, "configured"))[-1]["endpointing"]
        assert (answer["preset"], answer["eou_silence_ms"]) == ("dictation", 1_500)
        await socket.send(SEVENS + bytes(3 * SECOND))
        after = (await until(socket, "final"))[-1]
    waits = [final["commit_ms"] - final["speech_end_ms"] for final in (before, after)]
    assert waits[0] < 1_500 <= waits[1]


async def test_a_query_that_is_not_possible_is_refused_with_the_remedy(server_url: str) -> None:
    outcome = await session(f"{server_url}?endpointing=telephone&sample_rate=8000", [])
    assert outcome.code == 1008
    assert "telephone_digits" in outcome.messages[-1]["message"]


@pytest.mark.parametrize("preset", ["conversation", "dictation", "telephone_digits", "command"])
async def test_every_preset_ends_a_turn(server_url: str, preset: str) -> None:
    outcome = await session(f"{server_url}?endpointing={preset}", [SEVENS, bytes(3 * SECOND), END])
    assert [final["reason"] for final in outcome.of("final")] == ["eou"]
    assert outcome.messages[0]["endpointing"]["preset"] == preset


async def test_a_long_file_as_fast_as_the_socket_takes_it_loses_nothing(server_url: str) -> None:
    """90 s of recordings, then the end: every final, one last message, close."""
    turn = SEVENS + bytes(3 * SECOND // 2)
    count = 90 * SECOND // len(turn)
    outcome = await session(server_url, [turn * count, END])
    assert outcome.texts == [await text_alone(server_url, SEVENS)] * count
    assert [message["type"] for message in outcome.messages].count("done") == 1
    assert outcome.code == 1000


JUMPING_CLOCK = """
import itertools, time
real, jump = time.time, itertools.cycle((0, 3600, -3600, 0, -7200, 7200))
time.time = lambda: real() + next(jump)
"""


async def test_a_wall_clock_that_jumps_disturbs_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look at the server's wall clock is off by up to two hours, in turns."""
    (tmp_path / "sitecustomize.py").write_text(JUMPING_CLOCK)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    with running_server(tmp_path / "log") as url:
        async with talking(f"{url}?no_audio_ms=1000") as socket:
            await socket.send(CUT_OFF[:SECOND])
            await asyncio.sleep(0.3)
            await socket.send(CUT_OFF[SECOND:])
            messages: list[dict[str, Any]] = await until(socket, "final")
            assert messages[-1]["reason"] == "no_audio"
            await socket.send(END)
            assert (await until(socket, "done"))[-1]["audio_ms"] == len(CUT_OFF) // 32
