"""Sessions that outlive their connections: nothing is lost, nothing comes twice, everything is as in one piece."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from parakeet_live.dialects.messages import protocol_schema
from parakeet_live.dialects.query import BadParameterError
from parakeet_live.dialects.resume import ResumeClaim, parse_resume
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_models.bundle import Bundle
from support.cutting_proxy import cutting_proxy
from support.in_process import serving
from support.server_process import running_server
from support.sockets import END, Message, cut, read_all, session, wait_until_idle
from support.speech import spoken_pcm

PCM = spoken_pcm()
CONTROL = '{"type":"finalize"}'
"""Once and at its place in the audio: the final that it asks for shows that."""
STREAMS = int(os.environ.get("RESUME_STREAMS", "3"))
CUTS = int(os.environ.get("RESUME_CUTS", "8"))
"""The whole trial is RESUME_STREAMS=20 RESUME_CUTS=100 and takes minutes."""
SERVER_SCHEMA = {**protocol_schema(), "$ref": "#/$defs/ServerMessage"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, embedded_options: tuple[str, ...]) -> Iterator[str]:
    """A server that keeps sessions for a minute: time enough for the busiest machine."""
    log = tmp_path_factory.mktemp("resume") / "log"
    options = ("--max-streams", "32", "--resume-window-s", "60", "--no-warm-up")
    with running_server(log, *options, *embedded_options) as url:
        yield url


async def receive(client: ClientConnection, kind: str) -> Message:
    """The next message of this type; others before it are skipped."""
    async for text in client:
        message: Message = json.loads(text)
        jsonschema.validate(message, SERVER_SCHEMA)
        if message["type"] == kind:
            return message
    raise EOFError(f"no {kind}")


def again(url: str, ready: Message, seen: int) -> str:
    return f"{url}{'&' if '?' in url else '?'}resume={ready['resume_token']}&seen={seen}"


def plain(messages: list[Message]) -> list[dict[str, Any]]:
    """Finals without what depends on the clock or on other messages."""
    return [
        {name: value for name, value in message.items() if name not in ("seq", "timing")}
        for message in messages
        if message["type"] == "final"
    ]


class Stubborn:
    """A client that goes on after every loss, by the letter of the protocol and without our library."""

    def __init__(self, url: str, sent: list[bytes | str]) -> None:
        self._url = url
        self._sent = sent
        self.messages: list[Message] = []
        self.ready: Message = {}

    @property
    def seen(self) -> int:
        return max((message.get("seq") or 0 for message in self.messages), default=0)

    async def run(self) -> list[Message]:
        """Everything the server said, results once each; ends with ``done``."""
        while not (self.messages and self.messages[-1]["type"] == "done"):
            try:
                target = again(self._url, self.ready, self.seen) if self.ready else self._url
                async with connect(target, compression=None, max_queue=None) as client:
                    self.ready = await receive(client, "ready")
                    sender = asyncio.create_task(self._send(client))
                    try:
                        async for text in client:
                            self._take(json.loads(text))
                    finally:
                        sender.cancel()
                        await asyncio.gather(sender, return_exceptions=True)
            except (OSError, EOFError, WebSocketException):
                await asyncio.sleep(0.02)
        return self.messages

    def _take(self, message: Message) -> None:
        if message["type"] in ("ack", "warning"):
            return
        assert message["seq"] > self.seen, "a result came twice"
        self.messages.append(message)

    async def _send(self, client: ClientConnection) -> None:
        """What the session has not received, from the byte and the control message it is at."""
        bytes_left, controls_left = self.ready["audio_bytes"], self.ready["controls"]
        for message in self._sent:
            if isinstance(message, str):
                controls_left -= 1
                if controls_left < 0:
                    await client.send(message)
            elif bytes_left >= len(message):
                bytes_left -= len(message)
            else:
                await client.send(message[bytes_left:])
                bytes_left = 0
            await asyncio.sleep(0.01)


async def test_random_cuts_lose_and_double_nothing(url: str) -> None:
    rng = random.Random(7)
    sent = [
        [
            *cut(spoken_pcm(2, n), 6401 + 100 * (n % 7), 1),
            CONTROL,
            *cut(spoken_pcm(1, n + 3), 9000),
            END,
        ]
        for n in range(STREAMS)
    ]
    # A busy machine may keep a connected client from sending; that pause of the wall clock is not what is tested.
    url = f"{url}?no_audio_ms=600000"
    expected = [await session(url, messages) for messages in sent]
    async with cutting_proxy(url) as proxy:
        clients = [Stubborn(proxy.url, messages) for messages in sent]
        running = [asyncio.create_task(client.run()) for client in clients]
        for _ in range(CUTS):
            await asyncio.sleep(rng.uniform(0.05, 0.4))
            proxy.cut()
        results = await asyncio.gather(*running)
        assert proxy.accepted > 2 * len(sent), "too few cuts to prove anything"
    for messages, outcome in zip(results, expected, strict=True):
        assert plain(messages) == plain(outcome.messages)
        done = messages[-1]
        assert {**done, "seq": 0} == outcome.done


async def test_a_resumed_connection_is_told_where_to_go_on(url: str) -> None:
    async with connect(url, compression=None) as client:
        first = await receive(client, "ready")
        assert (first["resumed"], first["audio_bytes"], first["controls"]) == (False, 0, 0)
        assert first["resume_window_ms"] == 60_000
        await client.send(PCM[:100_001])
        await client.send('{"type":"finalize"}')
        final = await receive(client, "final")
        while final["reason"] != "finalize":
            final = await receive(client, "final")
        client.transport.abort()
    async with connect(again(url, first, final["seq"]), compression=None) as client:
        second = await receive(client, "ready")
        assert (second["resumed"], second["audio_bytes"], second["controls"]) == (True, 100_001, 1)
        assert (second["session"], second["resume_token"]) == (first["session"], first["resume_token"])
        await client.send(END)
        outcome = await read_all(client)
    assert outcome.code == 1000
    assert outcome.messages[-1]["audio_ms"] == 3125
    assert min(message["seq"] for message in outcome.messages if message.get("seq")) > final["seq"]


async def test_results_of_the_gap_are_sent_again(url: str) -> None:
    expected = await session(url, [PCM, END])
    async with connect(url, compression=None) as client:
        ready = await receive(client, "ready")
        await client.send(PCM)
        await client.send(END)
        await receive(client, "final")
        client.transport.abort()
    await wait_until_idle(url)  # everything is recognised, and nobody was there to hear it
    for _ in range(2):  # and once more, for a client that loses this connection too
        async with connect(again(url, ready, 0), compression=None, max_queue=None) as client:
            outcome = await read_all(client)
        assert plain(outcome.messages) == plain(expected.messages)
        assert outcome.done == expected.done


async def test_an_outage_is_no_pause_of_the_speaker(url: str) -> None:
    """Text is pending, and the client is away for longer than it may send nothing."""
    hasty = f"{url}?no_audio_ms=2000"
    middle = len(spoken_pcm(1, 1)) // 4 * 2
    expected = await session(hasty, [PCM, END])
    async with connect(hasty, compression=None, max_queue=None) as client:
        ready = await receive(client, "ready")
        await client.send(PCM[:middle])
        partial = await receive(client, "partial")
        client.transport.abort()
    await asyncio.sleep(4)
    async with connect(again(hasty, ready, partial["seq"]), compression=None, max_queue=None) as client:
        await receive(client, "ready")
        await client.send(PCM[middle:])
        await client.send(END)
        outcome = await read_all(client)
    assert plain(outcome.messages) == plain(expected.messages)


async def test_the_newer_of_two_connections_has_the_session(url: str) -> None:
    async with connect(url, compression=None) as old:
        ready = await receive(old, "ready")
        await old.send(PCM[:32_000])
        async with connect(again(url, ready, 0), compression=None) as new:
            assert (await receive(new, "ready"))["resumed"]
            outcome = await read_all(old)
            assert (outcome.code, outcome.reason) == (4003, "superseded")
            await new.send(END)
            assert (await read_all(new)).code == 1000


@pytest.mark.parametrize("how", ["close", "no code", "end"])
async def test_who_leaves_on_purpose_is_not_waited_for(url: str, how: str) -> None:
    async with connect(url, compression=None) as client:
        ready = await receive(client, "ready")
        await client.send(PCM)
        if how == "end":
            await client.send(END)
            await read_all(client)
        elif how == "close":
            await client.close(1001)
        else:
            client.transport.write(b"\x88\x80" + bytes(4))  # a close frame without a code, as browsers send
            await client.wait_closed()
    await wait_until_idle(url)
    outcome = await session(again(url, ready, 0), [])
    if how == "end":
        assert outcome.code == 1000  # it may have lost the last messages
    else:
        assert (outcome.messages[-1]["code"], outcome.code) == ("resume_failed", 1008)


async def test_a_wrong_token_is_refused_and_changes_nothing(url: str) -> None:
    async with connect(url, compression=None) as client:
        ready = await receive(client, "ready")
        client.transport.abort()
    for token in ("x", f"{ready['session']}.x", f"{ready['session']}."):
        outcome = await session(f"{url}?resume={token}&seen=0", [])
        assert (outcome.messages[-1]["code"], outcome.code) == ("resume_failed", 1008)
    async with connect(again(url, ready, 0), compression=None) as client:
        assert (await receive(client, "ready"))["resumed"]


async def test_a_session_is_given_up_after_its_window(random_bundle: Bundle) -> None:
    settings = Settings(resume_window_s=0.1, warm_up=False)
    async with serving(Recognizer.load(random_bundle, max_streams=1), settings) as url:
        async with connect(url, compression=None) as client:
            ready = await receive(client, "ready")
            await client.send(PCM[:32_000])
            client.transport.abort()
        await wait_until_idle(url)
        outcome = await session(again(url, ready, 0), [])
        assert (outcome.messages[-1]["code"], outcome.code) == ("resume_failed", 1008)


async def test_a_session_that_failed_cannot_be_resumed(url: str) -> None:
    async with connect(url, compression=None) as client:
        ready = await receive(client, "ready")
        await client.send(b"OggS" + bytes(100))
        assert (await read_all(client)).code == 1003
    outcome = await session(again(url, ready, 0), [])
    assert outcome.messages[-1]["code"] == "resume_failed"


async def test_a_server_may_not_offer_it(small_server_url: str) -> None:
    async with connect(small_server_url, compression=None) as client:
        ready = await receive(client, "ready")
        assert (ready["resume_token"], ready["resume_window_ms"]) == (None, 0)


def test_the_claim_is_read_from_the_query() -> None:
    query = [("encoding", "mulaw"), ("resume", "a.b"), ("seen", "12")]
    assert parse_resume(query) == (ResumeClaim("a.b", 12), [("encoding", "mulaw")])
    assert parse_resume([("channels", "1")]) == (None, [("channels", "1")])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ([("seen", "1")], "goes with resume"),
        ([("resume", ""), ("seen", "1")], "goes with resume"),
        ([("resume", "x")], "needs seen"),
        ([("resume", "x"), ("seen", "-1")], "needs seen"),
        ([("resume", "x"), ("seen", "1" * 30)], "needs seen"),
        ([("resume", "x"), ("resume", "y"), ("seen", "1")], "more than once"),
    ],
)
def test_bad_claims_name_the_remedy(query: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(BadParameterError, match=says):
        parse_resume(query)
