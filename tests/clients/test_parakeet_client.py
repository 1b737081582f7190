"""The Python client, asynchronous and blocking, against a running server."""

from __future__ import annotations

import asyncio
import socket
import wave
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import websockets.asyncio.server as websocket_server

from parakeet_client import (
    Configured,
    ConnectionLostError,
    Done,
    Error,
    Event,
    Final,
    Options,
    Partial,
    RefusedError,
    ServerError,
    connect,
    connect_sync,
    stream_file,
)
from parakeet_client.events import KINDS, parse
from parakeet_client.wire import FRAME_BYTES, SEND_BUFFER_BYTES, frames, stream_url
from parakeet_live.dialects.messages import protocol_schema
from parakeet_live.web.run import listening_socket
from support.random_bundle import noise
from support.sockets import wait_until_idle

PCM = (noise(3.0, 2) * 32767).astype("<i2").tobytes()
READY = (
    '{"type":"ready","protocol":1,"session":"s","model":"m","languages":["en"],"encoding":"pcm_s16le",'
    '"sample_rate":16000,"channels":1,"step_ms":160,"limits":{}}'
)


async def transcribe(url: str, audio: bytes) -> list[Event]:
    async with connect(url) as stream:
        await stream.send(audio)
        await stream.end()
        return [event async for event in stream]


async def test_a_ping_waits_behind_little_audio() -> None:
    """A server that reads nothing: the system takes some seconds of audio, and no minutes."""

    async def deaf(connection: websocket_server.ServerConnection) -> None:
        await connection.send(READY)
        connection.transport.pause_reading()
        await over.wait()
        connection.transport.abort()

    over = asyncio.Event()
    with listening_socket("127.0.0.1", 0) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            websocket_server.serve(deaf, sock=listener, compression=None),
            connect(url, reconnect=False) as stream,
        ):
            sending = asyncio.create_task(stream.send(bytes(6_000_000)))
            await asyncio.wait((sending,), timeout=1)
            underway = stream.kept_bytes
            over.set()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    assert SEND_BUFFER_BYTES < underway < 2_500_000, "without limits more than 4 MB"


async def test_a_session(babble_url: str) -> None:
    async with connect(babble_url, encoding="pcm_s16le", sample_rate=16_000, channels=1) as stream:
        assert stream.ready.model == "random"
        assert stream.ready.limits["max_frame_bytes"] == 16 * 1024 * 1024
        await stream.keepalive()
        await stream.send(PCM[:32_000])
        await stream.finalize()
        await stream.send(memoryview(PCM[32_000:]))
        await stream.end()
        events = [event async for event in stream]
        assert [event async for event in stream] == []
    assert isinstance(events[-1], Done)
    assert events[-1].audio_ms == 3000
    finals = [event for event in events if isinstance(event, Final)]
    assert "finalize" in [final.reason for final in finals]
    assert any(isinstance(event, Partial) and event.words for event in events)


async def test_array_views_are_sent_as_bytes(babble_url: str) -> None:
    samples = np.frombuffer(PCM, "<i2").reshape(-1, 100)
    async with connect(babble_url) as stream:
        await stream.send(memoryview(samples))
        await stream.end()
        assert [event async for event in stream] == await transcribe(babble_url, PCM)


def test_the_blocking_twin_hears_the_same(babble_url: str) -> None:
    with connect_sync(babble_url, sample_rate=16_000) as stream:
        assert stream.receive(timeout=0) is None
        stream.keepalive()
        stream.send(PCM)
        stream.end()
        events = list(stream)
        assert stream.receive() is None
    assert events == asyncio.run(transcribe(babble_url, PCM))


def test_the_blocking_twin_finalizes(babble_url: str) -> None:
    with connect_sync(babble_url) as stream:
        stream.finalize()
        assert stream.receive() == Final(0, "", (), 0, "finalize")


async def test_sending_everything_before_reading_anything(babble_url: str) -> None:
    assert (await transcribe(babble_url, PCM * 10))[-1] == Done(30_000, len(await finals(babble_url)))


async def finals(url: str) -> list[str]:
    return [
        event.text for event in await transcribe(url, PCM * 10) if isinstance(event, Final) and event.text
    ]


# Errors


async def test_refusals(babble_url: str) -> None:
    with pytest.raises(RefusedError, match="8000 to 192000") as caught:
        async with connect(babble_url, sample_rate=1):
            pass
    assert caught.value.code == "bad_parameter"
    with pytest.raises(RefusedError, match="connect to /v1/stream"):
        async with connect(babble_url.replace("stream", "steam")):
            pass


def test_refusals_of_the_blocking_twin(babble_url: str) -> None:
    with pytest.raises(RefusedError, match="pcm_s16le"), connect_sync(babble_url, encoding="opus"):
        pass


async def test_a_fatal_error_is_raised_with_its_reason(babble_url: str) -> None:
    with pytest.raises(ServerError, match="raw PCM") as caught:
        await transcribe(babble_url, b"OggS" + bytes(1000))
    assert caught.value.code == "unsupported_container"
    with connect_sync(babble_url) as stream:
        stream.send(b"fLaC" + bytes(1000))
        with pytest.raises(ServerError, match="FLAC"):
            list(stream)


async def test_an_error_that_is_not_fatal_is_an_event(babble_url: str) -> None:
    async with connect(babble_url) as stream:
        await stream.send(b'{"type":"end"}')
        await stream.end()
        events = [event async for event in stream]
    assert [type(event) for event in events] == [Error, Done]


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"ws://127.0.0.1:{listener.getsockname()[1]}/v1/stream"


async def test_a_url_of_another_kind_is_explained() -> None:
    for url in ("http://127.0.0.1:1/", "127.0.0.1:8765/v1/stream", "ws:"):
        with pytest.raises(RefusedError, match="no WebSocket URL"):
            async with connect(url):
                pass


async def test_an_unreachable_server() -> None:
    url = unused_url()
    with pytest.raises(RefusedError, match="cannot connect"):
        async with connect(url):
            pass
    with pytest.raises(RefusedError, match="cannot connect"), connect_sync(url):
        pass


async def served(handler: object) -> AsyncIterator[str]:
    async with websocket_server.serve(handler, "127.0.0.1", 0) as server:  # type: ignore[arg-type]
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


async def test_a_connection_that_breaks_is_an_error() -> None:
    async def handler(connection: websocket_server.ServerConnection) -> None:
        await connection.send(READY)
        await connection.recv()
        await connection.close(1001)

    async for url in served(handler):
        with pytest.raises(ConnectionLostError, match="1001"):
            await transcribe(url, PCM)


async def test_a_server_of_another_kind() -> None:
    async def handler(connection: websocket_server.ServerConnection) -> None:
        await connection.send('{"type":"hello"}')
        await connection.wait_closed()

    async for url in served(handler):
        with pytest.raises(RefusedError, match="check the URL"):
            await transcribe(url, PCM)


# Options

OPTIONS = Options(
    endpointing="telephone_digits", eou_silence_ms=900, vad=False, format=("punctuation", "numerals")
)


def in_force(endpointing: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(endpointing[name] for name in ("preset", "eou_silence_ms", "silence_ms", "vad"))


async def test_options_are_stated_by_name_and_changed_by_name(babble_url: str) -> None:
    async with connect(babble_url, **OPTIONS) as stream:
        assert in_force(stream.ready.endpointing) == ("telephone_digits", 900, 1_800, False)
        assert set(stream.ready.format) == {"punctuation", "numerals"}
        await stream.configure(endpointing="dictation", silence_ms=5_000, format="numerals")
        assert isinstance(changed := await stream.receive(), Configured)
        assert in_force(changed.endpointing) == ("dictation", 2_000, 5_000, True)
        assert list(changed.format) == ["numerals"]
        await stream.configure(format=())
        assert isinstance(changed := await stream.receive(), Configured)
        assert in_force(changed.endpointing) == ("dictation", 2_000, 5_000, True)
        assert list(changed.format) == []


def test_the_blocking_twin_takes_the_same_options(babble_url: str) -> None:
    with connect_sync(babble_url, **OPTIONS) as stream:
        assert in_force(stream.ready.endpointing) == ("telephone_digits", 900, 1_800, False)
        stream.configure(endpointing="command")
        assert isinstance(changed := stream.receive(), Configured)
        assert changed.endpointing["preset"] == "command"


async def test_a_file_takes_the_same_options(babble_url: str, tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav")
    raw = [event async for event in stream_file(path, babble_url, pace="fast")]
    readable = [event async for event in stream_file(path, babble_url, pace="fast", format="punctuation")]
    assert all(event.formatted is None for event in raw if isinstance(event, Final))
    assert all(event.formatted for event in readable if isinstance(event, Final) and event.text)
    assert any(isinstance(event, Final) and event.text for event in readable)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"end_pointing": "dictation"}, "possible are endpointing"),
        ({"eou_silence_ms": "900"}, "whole number"),
        ({"eou_silence_ms": 0.9}, "whole number"),
        ({"silence_ms": True}, "whole number"),
        ({"vad": "no"}, "True or False"),
        ({"endpointing": 3}, "a string"),
        ({"format": ["numerals", 1]}, "sequence of strings"),
        ({"format": None}, "sequence of strings"),
    ],
)
async def test_options_of_another_name_or_type_are_errors_here(
    babble_url: str, options: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(TypeError, match=remedy):
        async with connect(unused_url(), **options):
            pass
    async with connect(babble_url) as stream:
        with pytest.raises(TypeError, match=remedy):
            await stream.configure(**options)
        await stream.end()
        assert [event async for event in stream] == [Done(0, 0)]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"endpointing": "opera"}, "conversation"),
        ({"eou_silence_ms": 70_000}, "60000"),
        ({"format": "roman"}, "numerals"),
    ],
)
async def test_what_is_possible_is_what_the_server_says(
    babble_url: str, options: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(RefusedError, match=remedy):
        async with connect(babble_url, **options):
            pass


# Files


def write_wav(path: Path, *, rate: int = 16_000, width: int = 2, audio: bytes = PCM) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, width, rate, 0, "NONE", ""))
        file.writeframes(audio)
    return path


@pytest.mark.parametrize("pace", ["live", "fast"])
async def test_a_file_gives_the_same_as_its_samples(babble_url: str, tmp_path: Path, pace: str) -> None:
    path = write_wav(tmp_path / "a.wav", audio=PCM[:32_000])
    events = [event async for event in stream_file(path, babble_url, pace=pace)]  # type: ignore[arg-type]
    assert events == await transcribe(babble_url, PCM[:32_000])


async def test_a_file_brings_its_rate(babble_url: str, tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", rate=48_000)
    assert [event async for event in stream_file(path, babble_url, pace="fast")][-1].audio_ms == 1000  # type: ignore[union-attr]


async def test_leaving_a_file_early_ends_its_session(babble_url: str, tmp_path: Path) -> None:
    events = stream_file(write_wav(tmp_path / "a.wav", audio=PCM * 10), babble_url)
    assert isinstance(await anext(aiter(events)), Partial)
    await events.aclose()  # type: ignore[attr-defined]
    await wait_until_idle(babble_url)


async def test_other_files_are_refused_with_the_remedy(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("no audio")
    wide = write_wav(tmp_path / "wide.wav", width=3)
    for path in (text, wide):
        with pytest.raises(ValueError, match="ffmpeg"):
            await anext(aiter(stream_file(path, unused_url())))


# Wire


def test_the_url_keeps_its_query() -> None:
    assert stream_url("ws://h/v1/stream", None, None, None) == "ws://h/v1/stream"
    assert stream_url("ws://h/v1/stream?a=b", "mulaw", 8000, None) == (
        "ws://h/v1/stream?a=b&encoding=mulaw&sample_rate=8000"
    )
    options = {"vad": False, "eou_silence_ms": 900, "format": ["numerals", "punctuation"]}
    assert stream_url("ws://h/v1/stream?a=b", None, None, 1, options) == (
        "ws://h/v1/stream?a=b&channels=1&vad=false&eou_silence_ms=900&format=numerals,punctuation"
    )


def test_large_blocks_are_cut() -> None:
    data = np.random.default_rng(0).bytes(2 * FRAME_BYTES + 3)
    assert [len(frame) for frame in frames(data)] == [FRAME_BYTES, FRAME_BYTES, 3]
    assert b"".join(frames(data)) == data
    assert list(frames(b"")) == []


def test_messages_of_a_newer_server_are_tolerated() -> None:
    assert parse('{"type":"speaker_changed","at":1}') is None
    assert parse('{"type":"done","audio_ms":1,"utterances":0,"cost":5}') == Done(1, 0)


def test_events_are_those_of_the_protocol() -> None:
    """Every message has its class, and every field of a class is one of the message."""
    definitions = protocol_schema()["$defs"]
    messages = {
        schema["properties"]["type"]["const"]: set(schema["properties"])
        for schema in definitions.values()
        if "const" in schema.get("properties", {}).get("type", {})
    }
    for name, kind in KINDS.items():
        ours = {field.name for field in fields(kind)}
        assert ours <= messages[name], (name, ours - messages[name])
    from_server = {
        definitions[choice["$ref"].rpartition("/")[2]]["properties"]["type"]["const"]
        for choice in definitions["ServerMessage"]["oneOf"]
    }
    assert from_server == set(KINDS)
