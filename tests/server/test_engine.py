"""The promise of the engine: any fragmentation and any company, the same events."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parakeet_live.engine.backend import CapacityError, Emission, EngineError, StepInput
from parakeet_live.engine.offline import Transcriber
from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.engine.stream import Stream
from parakeet_live.session.events import Done, Event, Final, Partial, Reason
from parakeet_models.bundle import Bundle
from support.backends import BackendUnderTest
from support.random_bundle import noise
from support.scripted import AT_ONCE, PATIENT

AUDIO = noise(9.0, seed=5)


@pytest.fixture(autouse=True)
def _never_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine streams lag and catch up in large steps, whose last digits differ; here they are compared."""
    monkeypatch.setattr("parakeet_live.engine.recognizer.LAG_LIMIT", 1e9)


@pytest.fixture(scope="module")
def transcriber(random_bundle: Bundle) -> Transcriber:
    return Transcriber(random_bundle)


@pytest.fixture(scope="module")
def reference(transcriber: Transcriber) -> list[Event]:
    events = list(transcriber.stream([AUDIO], AT_ONCE))
    finals = [event for event in events if isinstance(event, Final)]
    assert len(finals) >= 2, "the random network must end utterances, or these tests prove little"
    assert sum(len(final.words) for final in finals) >= 10
    return events


@pytest.fixture(scope="module")
def alone(transcriber: Transcriber) -> list[Event]:
    """AUDIO with the default endpointing."""
    return list(transcriber.stream([AUDIO]))


def pieces(samples: np.ndarray, rng: random.Random, longest: int) -> Iterator[np.ndarray]:
    start = 0
    while start < len(samples):
        size = rng.randint(0, longest)
        yield samples[start : start + size]
        start += size


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), longest=st.sampled_from([80, 700, 5_000, 160_000]))
def test_any_fragmentation_gives_identical_events(
    transcriber: Transcriber, reference: list[Event], seed: int, longest: int
) -> None:
    cut = pieces(AUDIO, random.Random(seed), longest)
    assert list(transcriber.stream(cut, AT_ONCE)) == reference


def test_single_samples_give_identical_events(transcriber: Transcriber) -> None:
    audio = AUDIO[: 16_000 * 2]
    one_by_one = (audio[i : i + 1] for i in range(len(audio)))
    assert list(transcriber.stream(one_by_one)) == list(transcriber.stream([audio]))


def test_partials_only_grow_and_finals_keep_them(reference: list[Event]) -> None:
    text: dict[int, str] = {}
    finals = []
    for event in reference:
        if isinstance(event, Partial | Final):
            assert event.utterance not in finals
            assert event.text.startswith(text.get(event.utterance, ""))
            assert event.text == " ".join(word.text for word in event.words)
            text[event.utterance] = event.text
        if isinstance(event, Final):
            finals.append(event.utterance)
    assert finals == list(range(len(finals)))
    assert isinstance(reference[-1], Done)
    assert reference[-1].utterances == len(finals)
    assert reference[-1].audio_ms == len(AUDIO) // 16


def test_times_are_monotonic_and_inside_the_audio(reference: list[Event]) -> None:
    last = 0
    for event in reference:
        assert not isinstance(event, Partial | Final) or event.audio_ms >= last
        last = event.audio_ms
        if isinstance(event, Partial | Final):
            for before, after in zip(event.words, event.words[1:], strict=False):
                assert before.start_ms <= before.end_ms <= after.start_ms
            assert all(0 <= w.start_ms <= w.end_ms <= len(AUDIO) // 16 for w in event.words)
            assert all(0.0 < w.confidence <= 1.0 for w in event.words)


async def feed(recognizer: Recognizer, samples: np.ndarray, seed: int) -> list[Event]:
    rng = random.Random(seed)
    stream = recognizer.open(PATIENT)

    async def push() -> None:
        for piece in pieces(samples, rng, 8_000):
            stream.push(piece)
            await stream.wait_below(1_000)
            await asyncio.sleep(rng.random() * 0.005)
        stream.end()

    pushing = asyncio.create_task(push())
    events = [event async for event in stream]
    await pushing
    return events


async def test_sixteen_interleaved_sessions_equal_the_same_sessions_alone(random_bundle: Bundle) -> None:
    audio = [noise(3.0 + seed / 4, seed=seed) for seed in range(16)]
    alone = Transcriber(random_bundle)
    async with Recognizer.load(random_bundle, max_streams=16) as recognizer:
        together = await asyncio.gather(*(feed(recognizer, a, seed) for seed, a in enumerate(audio)))
        assert recognizer.active_streams == 0 or await _settles(recognizer)
    for samples, events in zip(audio, together, strict=True):
        assert events == list(alone.stream([samples]))


async def _settles(recognizer: Recognizer) -> bool:
    for _ in range(200):
        if recognizer.active_streams == 0:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_every_slot_comes_back_on_every_exit(random_bundle: Bundle, alone: list[Event]) -> None:
    async with Recognizer.load(random_bundle, max_streams=3) as recognizer:
        for _ in range(5):
            streams = [recognizer.open() for _ in range(3)]
            with pytest.raises(CapacityError):
                recognizer.open()
            for stream in streams:
                stream.push(AUDIO)
            await asyncio.sleep(0)
            streams[0].close()
            streams[1].end()
            streams[2].close()
            streams[2].close()
            assert [event async for event in streams[1]][-1] == Done(
                len(AUDIO) // 16, len([e for e in alone if isinstance(e, Final)])
            )
            assert await _settles(recognizer)


async def test_a_failing_engine_fails_its_streams_and_nobody_else(
    random_bundle: Bundle, alone: list[Event]
) -> None:
    class Failing(BackendUnderTest):
        broken: int | None = None

        def step(self, inputs: list[StepInput]) -> list[list[Emission]]:  # type: ignore[override]
            if any(step.slot == self.broken for step in inputs):
                raise RuntimeError("the accelerator is gone")
            return super().step(inputs)

    backend = Failing(random_bundle, 4)
    async with Recognizer(random_bundle, backend) as recognizer:
        bad = recognizer.open()
        backend.broken = bad.slot
        bad.push(AUDIO)
        bad.end()
        with pytest.raises(EngineError, match="accelerator is gone"):
            _ = [event async for event in bad]
        assert await _settles(recognizer)
        backend.broken = None
        assert await feed(recognizer, AUDIO, 1) == alone


def test_a_loop_that_ends_in_the_middle_of_a_step_does_not_wait_for_ever(random_bundle: Bundle) -> None:
    """As after a second Ctrl-C: every task is cancelled, and sessions wait until their slots are given back."""

    class Slow(BackendUnderTest):
        def step(self, inputs: list[StepInput]) -> list[list[Emission]]:  # type: ignore[override]
            begun.set()
            go_on.wait(10)
            return super().step(inputs)

    begun, go_on = threading.Event(), threading.Event()
    go_on.set()

    async def session(stream: Stream) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            stream.close()
            await stream.released()

    async def main() -> None:
        recognizer = await Recognizer(random_bundle, Slow(random_bundle, 1)).__aenter__()
        begun.clear()
        go_on.clear()
        stream = recognizer.open()
        task = asyncio.create_task(session(stream))
        stream.push(AUDIO)
        await asyncio.to_thread(begun.wait, 10)
        assert not task.done()
        threading.Timer(0.5, go_on.set).start()

    loop = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    loop.start()
    loop.join(20)
    assert not loop.is_alive()


async def test_finalize_always_answers_and_the_stream_goes_on(random_bundle: Bundle) -> None:
    async with Recognizer.load(random_bundle, max_streams=1) as recognizer:
        stream = recognizer.open()
        stream.finalize()
        stream.push(AUDIO[:20_001])
        stream.finalize()
        stream.finalize()
        stream.push(AUDIO[20_001:])
        stream.end()
        events = [event async for event in stream]
    forced = [e for e in events if isinstance(e, Final) and e.reason is Reason.FINALIZE]
    assert len(forced) == 3
    assert [e.audio_ms for e in forced] == [0, 1250, 1250]
    assert (forced[0].text, forced[2].text) == ("", "")
    finals = [e for e in events if isinstance(e, Final)]
    assert [e.utterance for e in finals] == list(range(len(finals)))
    assert isinstance(events[-1], Done)
    assert events[-1].audio_ms == len(AUDIO) // 16


@pytest.mark.onnx_only("workers give out room as streams come")
def test_more_streams_than_memory_has_room_for(random_bundle: Bundle) -> None:
    with pytest.raises(EngineError, match=r"no memory for 1000000000 streams .* max_streams"):
        BackendUnderTest(random_bundle, 10**9)


@pytest.mark.onnx_only("the packages have a batch of one")
def test_batch_rows_of_any_age_and_size_are_bit_equal_to_running_alone(random_bundle: Bundle) -> None:
    rng = np.random.default_rng(1)
    bins = random_bundle.manifest.mel.bins
    together, alone = (
        BackendUnderTest(random_bundle, 8),
        [BackendUnderTest(random_bundle, 1) for _ in range(8)],
    )
    slots: dict[int, int] = {}
    emitted = 0
    for _ in range(60):
        for stream in range(8):
            if stream not in slots and rng.random() < 0.3:
                slots[stream] = together.open()
                assert alone[stream].open() == 0
        steps = []
        for stream, slot in slots.items():
            if rng.random() < 0.7:
                frames = int(rng.choice([2, 4, 8, 16]))
                mel = (rng.standard_normal((8 * frames + 1, bins)) * 3 - 8).astype(np.float32)
                steps.append((stream, StepInput(slot, mel, 0, len(mel))))
        results = together.step([step for _, step in steps])
        for (stream, step), result in zip(steps, results, strict=True):
            own = StepInput(0, step.mel, step.begin, step.end)
            assert alone[stream].step([own])[0] == result
            emitted += len(result)
        if steps and rng.random() < 0.1:
            stream = steps[0][0]
            together.close(slots.pop(stream))
            alone[stream].close(0)
    assert emitted > 50


async def test_a_stream_that_lags_catches_up_in_large_steps_with_the_same_text(
    random_bundle: Bundle, alone: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parakeet_live.engine.recognizer.LAG_LIMIT", -1.0)
    sizes: set[int] = set()

    class Watched(BackendUnderTest):
        def step(self, inputs: list[StepInput]) -> list[list[Emission]]:  # type: ignore[override]
            sizes.update(step.frames for step in inputs)
            return super().step(inputs)

    async with Recognizer(random_bundle, Watched(random_bundle, 1)) as recognizer:
        stream = recognizer.open()
        stream.push(AUDIO)
        stream.end()
        events = [event async for event in stream]
    assert {2, 16} <= sizes

    def without_confidence(events: list[Event]) -> list[object]:
        return [
            (e.utterance, e.text, e.audio_ms, [(w.text, w.start_ms, w.end_ms) for w in e.words])
            if isinstance(e, Partial | Final)
            else e
            for e in events
        ]

    assert without_confidence(events) == without_confidence(alone)
