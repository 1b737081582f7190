"""The server as clients see it: a real process, real sockets."""

from __future__ import annotations

import asyncio
import json
import socket as plain_socket
import struct
from urllib.parse import urlsplit

import jsonschema
import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from parakeet_live.dialects.messages import protocol_schema
from support.random_bundle import noise
from support.sockets import END, cut, http, read_all, session, wait_until_idle
from support.wav import wav_file

PCM = (noise(4.0, 1) * 32767).astype("<i2").tobytes()
"""Four seconds of sound, 16-bit, 16 kHz."""
SERVER_SCHEMA = {**protocol_schema(), "$ref": "#/$defs/ServerMessage"}


# A session


async def test_a_session_from_ready_to_done(babble_url: str) -> None:
    outcome = await session(babble_url, [*cut(PCM, 3200), END])
    for message in outcome.messages:
        jsonschema.validate(message, SERVER_SCHEMA)
    kinds = [message["type"] for message in outcome.messages]
    assert kinds[0] == "ready"
    assert kinds[-1] == "done"
    assert {"partial", "final"} <= set(kinds)
    assert (outcome.code, outcome.reason) == (1000, "")
    assert outcome.done == {
        "type": "done",
        "seq": 0,
        "audio_ms": 4000,
        "utterances": len([text for text in outcome.texts if text]),
        "reason": "end",
    }


async def test_results_are_numbered_and_audio_is_acknowledged(babble_url: str) -> None:
    wrong = "hello"
    outcome = await session(babble_url, [*cut(PCM, 3200), wrong, '{"type":"finalize"}', PCM, END])
    results = [m for m in outcome.messages if m["type"] in ("partial", "final", "error", "done")]
    assert [message["seq"] for message in results] == list(range(1, len(results) + 1))
    # An acknowledgement that was not sent yet gives way to the next, but the last second is always there.
    acks = outcome.of("ack")
    assert [ack["audio_ms"] for ack in acks] == sorted({ack["audio_ms"] for ack in acks})
    assert all(ack["audio_bytes"] == 32 * ack["audio_ms"] for ack in acks)
    assert acks[-1] == {"type": "ack", "audio_bytes": 2 * len(PCM), "audio_ms": 8000, "controls": 1}


async def test_partials_only_grow_and_finals_complete_them(babble_url: str) -> None:
    outcome = await session(babble_url, [*cut(PCM, 3200), END])
    texts: dict[int, str] = {}
    finished: list[int] = []
    for message in outcome.results:
        number = message["utterance"]
        assert number not in finished
        assert message["text"].startswith(texts.get(number, ""))
        assert [word["text"] for word in message["words"]] == message["text"].split()
        texts[number] = message["text"]
        if message["type"] == "final":
            finished.append(number)
    assert finished == list(range(len(finished)))
    assert set(texts) == set(finished)


@pytest.mark.parametrize("sizes", [(1,), (333, 1, 640, 7, 4001), (0, 160, 0), (100_000,), (128_001,)])
async def test_any_fragmentation_gives_the_same_events(babble_url: str, sizes: tuple[int, ...]) -> None:
    data = PCM[:32_000] if sizes == (1,) else PCM
    expected = await session(babble_url, [*cut(data, 3200), END])
    outcome = await session(babble_url, [*cut(data, *sizes), END])
    assert outcome.results == expected.results
    assert outcome.done == expected.done


async def test_sixteen_interleaved_sessions_equal_the_same_sessions_alone(babble_url: str) -> None:
    clips = [(noise(1.0 + index / 10, index) * 32767).astype("<i2").tobytes() for index in range(16)]
    alone = [await session(babble_url, [*cut(clip, 3200), END]) for clip in clips]
    together = await asyncio.gather(
        *(session(babble_url, [*cut(clip, 320 + 40 * index), END]) for index, clip in enumerate(clips))
    )
    assert [outcome.results for outcome in together] == [outcome.results for outcome in alone]


async def test_audio_sent_before_ready_is_recognised(babble_url: str) -> None:
    expected = await session(babble_url, [PCM, END])
    parts = urlsplit(babble_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**24)
    handshake = (
        f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    # The handshake and all audio in the same network write.
    frames = b"\x82\xff" + struct.pack("!Q", len(PCM)) + bytes(4) + PCM
    frames += b"\x81" + bytes([0x80 | len(END)]) + bytes(4) + END.encode()
    writer.write(handshake.encode() + frames)
    received = await reader.readuntil(b'"type":"done"')
    writer.close()
    assert received.startswith(b"HTTP/1.1 101")
    for text in expected.texts:
        assert text.encode() in received


async def test_finalize_answers_and_the_session_goes_on(babble_url: str) -> None:
    finalize = '{"type":"finalize"}'
    outcome = await session(babble_url, [finalize, PCM, finalize, finalize, PCM, END])
    reasons = [message["reason"] for message in outcome.of("final")]
    assert reasons.count("finalize") == 3
    assert outcome.texts[0] == ""
    assert outcome.messages[-1]["audio_ms"] == 8000


async def test_every_finalize_is_answered(babble_url: str) -> None:
    outcome = await session(babble_url, [PCM[:8000], *['{"type":"finalize"}'] * 40, END])
    assert [message["reason"] for message in outcome.of("final")].count("finalize") == 40


# Ends


async def test_end_without_audio(babble_url: str) -> None:
    outcome = await session(babble_url, [END])
    assert [message["type"] for message in outcome.messages] == ["ready", "done"]
    assert outcome.messages[-1] == {"type": "done", "seq": 1, "audio_ms": 0, "utterances": 0, "reason": "end"}
    assert outcome.code == 1000


async def test_one_sample_then_end(babble_url: str) -> None:
    outcome = await session(babble_url, [b"\x01\x00", END])
    assert len(outcome.of("done")) == 1
    assert outcome.code == 1000


async def test_audio_and_messages_after_end_are_dropped(babble_url: str) -> None:
    expected = await session(babble_url, [PCM, END])
    outcome = await session(babble_url, [PCM, END, *cut(PCM, 640), END, "?", END])
    assert outcome.results == expected.results
    assert outcome.done == expected.done
    assert len(outcome.of("done")) == 1
    assert outcome.code == 1000


@pytest.mark.parametrize("way", ["close", "reset", "half message"])
async def test_clients_that_vanish_free_their_slot(small_server_url: str, way: str) -> None:
    # Twice as many as there is room for; that none left an error in the log is checked when the server stops.
    for _ in range(4):
        async with connect(small_server_url) as client:
            await client.recv()
            await client.send(PCM)
            if way == "close":
                await client.close()
            elif way == "half message":
                client.transport.write(b"\x82\xfe\x10\x00" + bytes(100))
                client.transport.abort()
            else:
                reset(client)
        await wait_until_idle(small_server_url)
    outcome = await session(small_server_url, [PCM, END])
    assert outcome.code == 1000


def reset(client: ClientConnection) -> None:
    """End the TCP connection by a reset, as a crashed process or a router does."""
    raw = client.transport.get_extra_info("socket")
    raw.setsockopt(plain_socket.SOL_SOCKET, plain_socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.transport.abort()


# Formats


async def test_formats_are_decoded_alike(babble_url: str) -> None:
    pcm = np.frombuffer(PCM, "<i2")
    expected = await session(babble_url, [PCM, END])
    as_float = (pcm / 32768).astype("<f4").tobytes()
    stereo = np.stack([pcm, pcm], 1).tobytes()
    assert (await session(f"{babble_url}?encoding=pcm_f32le", [as_float, END])).results == expected.results
    assert (await session(f"{babble_url}?channels=2", [*cut(stereo, 999), END])).results == expected.results
    assert (await session(f"{babble_url}/?channels=1", [wav_file(PCM), END])).results == expected.results
    assert (await session(babble_url, [*cut(wav_file(PCM), 17, 5000), END])).results == expected.results


async def test_audio_length_does_not_depend_on_the_rate(babble_url: str) -> None:
    for encoding, rate, width in [("mulaw", 8000, 1), ("alaw", 8000, 1), ("pcm_s16le", 44_100, 2)]:
        data = np.random.default_rng(0).bytes(rate * width * 2)
        url = f"{babble_url}?encoding={encoding}&sample_rate={rate}"
        outcome = await session(url, [*cut(data, 4410), END])
        assert outcome.messages[-1]["audio_ms"] == 2000


# Refusals and errors


async def refusal(
    url: str, *sent: bytes | str, origin: str | None = None
) -> tuple[str, int | None, str | None]:
    """Code of the error that ends the session, and the close frame."""
    outcome = await session(url, sent, origin)
    for message in outcome.messages:
        jsonschema.validate(message, SERVER_SCHEMA)
    assert outcome.messages[-1]["fatal"] is True
    assert outcome.texts == []
    return outcome.messages[-1]["code"], outcome.code, outcome.reason


async def test_refusals_can_be_read(babble_url: str) -> None:
    bad = ("bad_parameter", 1008, "bad_parameter")
    assert await refusal(f"{babble_url}?encoding=opus") == bad
    assert await refusal(f"{babble_url}?sample_rate=1") == bad
    assert await refusal(f"{babble_url}/?channels=99") == bad
    assert await refusal(f"{babble_url}?rate=8000") == bad
    assert await refusal(babble_url.replace("/v1/stream", "/v1/steam")) == ("wrong_path", 1008, "wrong_path")
    webm = b"\x1aE\xdf\xa3" + np.random.default_rng(0).bytes(50_000)
    container = ("unsupported_container", 1003, "unsupported_container")
    assert await refusal(babble_url, *cut(webm, 4000)) == container
    mismatch = ("format_mismatch", 1003, "format_mismatch")
    assert await refusal(f"{babble_url}?sample_rate=16000", wav_file(PCM, rate=8000)) == mismatch
    envelope = json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"})
    assert await refusal(babble_url, envelope) == ("telephony_envelope", 1008, "telephony_envelope")
    assert await refusal(babble_url, *["?"] * 11) == ("too_many_errors", 1008, "too_many_errors")


async def test_messages_that_are_not_understood_change_nothing(babble_url: str) -> None:
    expected = await session(babble_url, [PCM, END])
    wrong = ["hello", '{"type":"stop"}', "[]", b'{"type":"end"}', "x" * 1_000_000]
    outcome = await session(babble_url, [*wrong, PCM, '{"type":"keepalive"}', END])
    assert [message["code"] for message in outcome.of("error")] == ["bad_message"] * 5
    assert outcome.results == expected.results


async def test_a_full_server_says_so(small_server_url: str) -> None:
    async with connect(small_server_url) as first, connect(small_server_url) as second:
        for client in (first, second):
            assert json.loads(await client.recv())["type"] == "ready"
        page = f"http://{urlsplit(small_server_url).netloc}"
        assert await refusal(small_server_url, origin=page) == ("server_full", 1013, "server_full")
        assert await refusal(small_server_url) == ("server_full", 503, "5")
        assert http(small_server_url, "/healthz").json()["active_streams"] == 2
    await wait_until_idle(small_server_url)
    assert (await session(small_server_url, [END])).code == 1000


async def test_a_large_message_is_taken_in_slices(babble_url: str) -> None:
    async with connect(babble_url, max_queue=None, compression=None) as client:
        await client.send(bytes(5 * 1024 * 1024))
        # Others are served meanwhile.
        assert (await session(babble_url, [PCM, END])).code == 1000
    await wait_until_idle(babble_url)


async def test_a_message_over_the_limit_is_refused_by_the_close_code(babble_url: str) -> None:
    async with connect(babble_url, compression=None) as client:
        # Its header is enough; and without a payload underway the answer cannot be lost in a TCP reset.
        client.transport.write(b"\x82\xff" + struct.pack("!Q", 16 * 1024 * 1024 + 1) + bytes(4))
        outcome = await read_all(client)
    assert outcome.code == 1009
    assert "16777216" in str(outcome.reason)
    await wait_until_idle(babble_url)


# Plain HTTP


def test_pages(babble_url: str) -> None:
    page = http(babble_url, "/")
    assert page.status_code == 200
    assert "<title>parakeet-live</title>" in page.text
    assert http(babble_url, "/js/app.js").headers["content-type"].startswith("text/javascript")
    health = http(babble_url, "/healthz").json()
    assert health["status"] == "ok"
    assert health["estimated_streams_left"] == health["max_streams"] > 0


@pytest.mark.parametrize("path", ["/v1/stream", "/v1/stream/"])
def test_a_get_on_the_stream_explains_itself(babble_url: str, path: str) -> None:
    answer = http(babble_url, path)
    assert answer.status_code == 426
    assert answer.headers["upgrade"] == "websocket"
    assert "WebSocket endpoint" in answer.text


def test_a_wrong_page_is_not_found(babble_url: str) -> None:
    assert http(babble_url, "/v1/steam").status_code == 404
