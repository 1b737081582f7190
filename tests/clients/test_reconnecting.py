"""The Python client on a bad network: it goes on by itself, delivers everything once, and says what it could not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_client import (
    ConnectionLostError,
    Done,
    Event,
    Final,
    Partial,
    Queued,
    Reconnected,
    Reconnecting,
    RefusedError,
    connect,
    connect_sync,
)
from parakeet_client.journal import Journal
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_models.bundle import Bundle
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.in_process import serving
from support.server_process import running_server
from support.speech import spoken_pcm
from support.wav import wav_file

PCM = spoken_pcm()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, embedded_options: tuple[str, ...]) -> Iterator[str]:
    log = tmp_path_factory.mktemp("reconnecting") / "log"
    options = ("--max-streams", "8", "--resume-window-s", "60", "--no-warm-up")
    with running_server(log, *options, *embedded_options) as url:
        yield url


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(url) as proxy:
        yield proxy


def results(events: list[Event]) -> list[Event]:
    """Finals and the end. Partials may differ: after a reconnect only the newest is sent again."""
    return [event for event in events if isinstance(event, Final | Done)]


async def transcribe(url: str, proxy: CuttingProxy | None = None, cuts: int = 0) -> list[Event]:
    """Events of PCM and once more PCM, the connection cut so many times on the way."""
    blocks = [PCM[start : start + 6400] for start in range(0, len(PCM), 6400)]
    async with connect(url) as stream:

        async def send() -> None:
            for number, block in enumerate(blocks * 2):
                await stream.send(block)
                if proxy and number * cuts // (2 * len(blocks)) != (number + 1) * cuts // (2 * len(blocks)):
                    proxy.cut()
                if number == len(blocks) - 1:
                    await stream.finalize()
            await stream.end()

        sender = asyncio.create_task(send())
        events = [event async for event in stream]
        await sender
        return events


async def test_cut_connections_change_nothing(url: str, proxy: CuttingProxy) -> None:
    expected = await transcribe(url)
    events = await transcribe(proxy.url, proxy, cuts=5)
    assert results(events) == results(expected)
    assert proxy.accepted >= 2
    reconnected = [event for event in events if isinstance(event, Reconnected)]
    assert len(reconnected) == proxy.accepted - 1
    assert not any(event.restarted for event in reconnected)
    assert len([event for event in events if isinstance(event, Reconnecting)]) == len(reconnected)
    last: dict[int, str] = {}
    for event in events:
        if isinstance(event, Partial):
            assert event.text.startswith(last.get(event.utterance, ""))
            last[event.utterance] = event.text


async def test_the_blocking_twin_goes_on_too(url: str, proxy: CuttingProxy) -> None:
    expected = await transcribe(url)

    def transcribe_blocking() -> list[Event]:
        with connect_sync(proxy.url) as stream:
            stream.send(PCM)
            loop.call_soon_threadsafe(proxy.cut)
            stream.finalize()
            stream.send(PCM)
            stream.end()
            return list(stream)

    loop = asyncio.get_running_loop()
    events = await asyncio.to_thread(transcribe_blocking)
    assert results(events) == results(expected)


async def test_audio_of_an_outage_is_kept_and_sent(url: str, proxy: CuttingProxy) -> None:
    expected = await transcribe(url)
    async with connect(proxy.url) as stream:
        await stream.send(PCM)
        proxy.refusing = True
        proxy.cut()
        await stream.finalize()
        await stream.send(PCM)
        await stream.end()
        first = None
        while not isinstance(first, Reconnecting):
            first = await stream.receive()
        proxy.refusing = False
        events = [event async for event in stream]
    assert isinstance(events[-1], Done)
    assert results(expected)[-len(results(events)) :] == results(events)
    assert any(isinstance(event, Reconnected) and not event.restarted for event in events)


async def test_without_reconnecting_a_loss_is_an_error(proxy: CuttingProxy) -> None:
    async with connect(proxy.url, reconnect=False) as stream:
        await stream.send(PCM[:6400])
        proxy.cut()
        with pytest.raises(ConnectionLostError):
            async for _ in stream:
                pass
        with pytest.raises(ConnectionLostError):
            await stream.send(PCM)


# Sessions that are gone


async def test_a_session_that_is_gone_starts_anew_and_says_so(random_bundle: Bundle) -> None:
    settings = Settings(resume_window_s=0.1, warm_up=False)
    async with (
        serving(Recognizer.load(random_bundle, max_streams=2), settings) as url,
        cutting_proxy(url) as proxy,
        connect(proxy.url) as stream,
    ):
        await stream.send(PCM[:64_001])
        while stream.kept_bytes > 32_000:
            assert await stream.receive() is not None
        kept = stream.kept_bytes
        proxy.refusing = True
        proxy.cut()
        await asyncio.sleep(1)  # the window closes
        proxy.refusing = False
        await stream.send(PCM[64_001:96_000])
        await stream.end()
        events = [event async for event in stream]
    (anew,) = (event for event in events if isinstance(event, Reconnected))
    assert anew.restarted
    begin = 64_001 - kept
    assert anew.audio_bytes == begin + begin % 2
    assert isinstance(events[-1], Done)
    assert events[-1].audio_ms == (96_000 - anew.audio_bytes) // 32


async def test_a_wav_file_cannot_start_in_the_middle(random_bundle: Bundle) -> None:
    settings = Settings(resume_window_s=0.1, warm_up=False)
    async with (
        serving(Recognizer.load(random_bundle, max_streams=2), settings) as url,
        cutting_proxy(url) as proxy,
        connect(proxy.url) as stream,
    ):
        await stream.send(wav_file(PCM)[:64_000])
        proxy.refusing = True
        proxy.cut()
        await asyncio.sleep(1)
        proxy.refusing = False
        with pytest.raises(ConnectionLostError, match="WAV"):
            async for _ in stream:
                pass


# A full server


async def test_waiting_for_a_stream(random_bundle: Bundle) -> None:
    settings = Settings(max_wait_s=60, warm_up=False)
    places: list[Queued] = []
    async with serving(Recognizer.load(random_bundle, max_streams=1), settings) as url:
        async with connect(url):
            waiting = asyncio.create_task(connect(url, on_queued=places.append).__aenter__())
            while not places:  # noqa: ASYNC110 - a callback without a loop in sight
                await asyncio.sleep(0.01)
            assert places[0].position == 1
            assert not waiting.done()
        stream = await waiting
        assert stream.ready.session
        await stream.aclose()


async def test_a_full_server_says_when_to_come_back(random_bundle: Bundle) -> None:
    settings = Settings(max_waiting=0, warm_up=False)
    async with serving(Recognizer.load(random_bundle, max_streams=1), settings) as url, connect(url):
        with pytest.raises(RefusedError) as caught:
            async with connect(url):
                pass
    assert (caught.value.code, caught.value.retry_after) == ("server_full", 5)


# Journal


def drain(journal: Journal) -> list[bytes | str]:
    messages = []
    while (message := journal.unsent()) is not None:
        messages.append(message)
        journal.advance()
    return messages


MESSAGES = st.lists(
    st.one_of(st.binary(min_size=1, max_size=20), st.sampled_from(["finalize", "end"])), max_size=20
)


@settings(max_examples=200, deadline=None)
@given(MESSAGES, st.data())
def test_after_any_loss_the_rest_is_sent_from_where_the_server_is(
    messages: list[bytes | str], data: st.DataObject
) -> None:
    """The server's side is a flat stream of bytes and control messages, of which any prefix may have arrived."""
    flat: list[int | str] = []
    for message in messages:
        flat += [message] if isinstance(message, str) else list(message)
    journal = Journal()
    for message in messages:
        journal.add(message)
        if data.draw(st.booleans()):
            drain(journal)
    arrived = 0
    for _ in range(3):
        acknowledged = data.draw(st.integers(0, arrived))
        journal.acknowledge(*position(flat[:acknowledged]))
        arrived = data.draw(st.integers(arrived, len(flat)))
        journal.rewind(*position(flat[:arrived]))
        rest: list[int | str] = []
        for message in drain(journal):
            rest += [message] if isinstance(message, str) else list(message)
        assert rest == flat[arrived:]
    assert journal.size == sum(isinstance(item, int) for item in flat[arrived:])


def position(prefix: list[int | str]) -> tuple[int, int]:
    controls = sum(isinstance(item, str) for item in prefix)
    return len(prefix) - controls, controls


def test_a_new_session_begins_at_a_whole_sample() -> None:
    journal = Journal()
    for message in (b"abcdefg", "finalize", b"hijk"):
        journal.add(message)
    journal.rewind(3, 0)
    assert journal.restart(4, "configure") == 4
    assert drain(journal) == ["configure", b"efg", "finalize", b"hijk"]
    journal.rewind(7, 2)
    assert journal.restart(4, None) == 11  # the end of all audio
    assert drain(journal) == []
    assert journal.audio_bytes == 11
