"""When utterances end: the state machine alone, and a whole session on scripted tokens and voices."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.engine.backend import Emission
from parakeet_live.session.endpoint_config import DEFAULT, PRESETS, EndpointingConfig, Preset
from parakeet_live.session.endpointing import VOICE_LAG_MS, WORD_GRACE_MS, Endpointer, Turn
from parakeet_live.session.events import (
    Cancelled,
    Done,
    Eou,
    Event,
    Final,
    Partial,
    Reason,
    Resumed,
    SpeechStarted,
)
from support.scripted import (
    EOB,
    EOU,
    LETTER_V,
    MARK,
    ONE,
    REE,
    TH,
    TWO,
    Driver,
    LoudIsVoice,
    Script,
)

FRAME_MS = 80
NUMBERS = replace(
    DEFAULT,
    eou_silence_ms=480,
    eou_hold_ms=640,
    silence_ms=1_200,
    silence_hold_ms=2_400,
    max_utterance_ms=8_000,
)
LOUD = 0.9


def only_final(driver: Driver) -> Final:
    (final,) = [event for event in driver.events if isinstance(event, Final)]
    return final


# The machine alone


def commit_frame(
    endpointer: Endpointer, frames: range, voice: bool | None = None
) -> tuple[int, Reason] | None:
    """The first frame without tokens whose end commits; a voice is always heard, or never, or nobody listens."""
    for frame in frames:
        reason = endpointer.frame_over(frame, None if voice is None else lambda: 0 if voice else 10**6)
        if reason is not None:
            return frame, reason
    return None


@settings(deadline=None)
@given(st.integers(0, 4_000), st.integers(0, 40), st.lists(st.integers(0, 100), max_size=20))
def test_the_debounce_counts_audio_since_the_last_token_and_not_end_tokens(
    silence_ms: int, eou_after: int, repeated: list[int]
) -> None:
    """Repeated end tokens neither restart nor shorten it."""
    endpointer = Endpointer(replace(NUMBERS, eou_silence_ms=silence_ms, silence_ms=60_000), FRAME_MS)
    endpointer.token(10, True)
    due = max(10 + -(-silence_ms // FRAME_MS), 10 + eou_after)
    for frame in range(10, due + 1):
        if frame == 10 + eou_after:
            assert endpointer.end_token(frame, False) is Turn.EAGER_END
        elif frame > 10 + eou_after and frame in repeated:
            assert endpointer.end_token(frame, False) is None
        assert endpointer.frame_over(frame, None) == (Reason.EOU if frame == due else None)


def test_a_token_before_the_commit_resumes_and_the_count_starts_again() -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    endpointer.token(0, True)
    endpointer.end_token(4, False)
    assert commit_frame(endpointer, range(0, 6)) is None
    assert endpointer.token(5, True) is Turn.RESUMED
    assert endpointer.token(6, False) is None
    # The old end token counts no more.
    assert commit_frame(endpointer, range(6, 20)) is None
    endpointer.end_token(20, False)
    assert endpointer.frame_over(20, None) is Reason.EOU


@pytest.mark.parametrize(
    ("voice", "frame", "reason"),
    [(None, 15, Reason.SILENCE), (False, 15, Reason.VAD), (True, 45, Reason.SILENCE)],
)
def test_without_an_end_token_silence_ends_and_a_voice_holds_for_a_limited_time(
    voice: bool | None, frame: int, reason: Reason
) -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    endpointer.token(0, True)
    assert commit_frame(endpointer, range(200), voice) == (frame, reason)


@pytest.mark.parametrize(("voice", "frame"), [(None, 6), (False, 6), (True, 14)])
def test_after_an_end_token_a_voice_holds_for_a_limited_time(voice: bool | None, frame: int) -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    endpointer.token(0, True)
    endpointer.end_token(2, False)
    assert commit_frame(endpointer, range(2, 200), voice) == (frame, Reason.EOU)


def test_a_voice_must_be_over_for_nearly_as_long_as_the_words() -> None:
    """The model missed the last word: the detector heard it, and the silence counts from there."""

    def since_voice_ms(frame: int) -> int:
        return frame * FRAME_MS - 800

    for wait_ms in (480, 1_840):
        endpointer = Endpointer(replace(NUMBERS, eou_silence_ms=wait_ms, eou_hold_ms=1_600), FRAME_MS)
        endpointer.token(0, True)
        endpointer.end_token(1, False)
        frame = 0
        while endpointer.frame_over(frame, partial(since_voice_ms, frame)) is None:
            frame += 1
        quiet_ms = since_voice_ms(frame)
        assert wait_ms - VOICE_LAG_MS <= quiet_ms < wait_ms - VOICE_LAG_MS + FRAME_MS


def test_silence_without_an_end_token_is_never_shorter_than_with_one() -> None:
    endpointer = Endpointer(replace(NUMBERS, eou_silence_ms=4_000, silence_ms=800), FRAME_MS)
    endpointer.token(0, True)
    assert commit_frame(endpointer, range(200)) == (50, Reason.SILENCE)


def test_nothing_ends_where_nothing_began() -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    assert commit_frame(endpointer, range(1_000), voice=True) is None
    assert endpointer.end_token(1_000, False) is None
    assert endpointer.end_token(1_001, True) is None


def test_the_longest_utterance_ends_where_the_next_word_begins() -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    endpointer.token(0, True)
    for frame in range(1, 100):
        assert endpointer.token(frame, False) is None
    assert endpointer.token(100, False) is None
    assert endpointer.token(101, True) is Reason.MAX_LENGTH


def test_a_word_without_end_is_cut_in_the_end() -> None:
    endpointer = Endpointer(NUMBERS, FRAME_MS)
    endpointer.token(0, True)
    last = (NUMBERS.max_utterance_ms + WORD_GRACE_MS) // FRAME_MS
    for frame in range(1, last):
        assert endpointer.token(frame, False) is None
    assert endpointer.token(last, False) is Reason.MAX_LENGTH


@pytest.mark.parametrize("preset", Preset)
def test_presets_are_named_after_themselves(preset: Preset) -> None:
    assert PRESETS[preset].preset is preset


def test_presets_wait_the_longer_the_more_pauses_belong_to_the_speech() -> None:
    waits = [
        PRESETS[preset].eou_silence_ms
        for preset in (Preset.COMMAND, Preset.CONVERSATION, Preset.TELEPHONE_DIGITS, Preset.DICTATION)
    ]
    assert waits == sorted(waits)
    assert all(config.no_audio_ms == 2_000 + config.silence_ms for config in PRESETS.values())


# A whole session


def test_an_eager_end_comes_first_and_the_final_after_the_silence() -> None:
    driver = Driver({4: [ONE], 8: [EOU]}, endpointing=NUMBERS)
    driver.push(3_000)
    kinds = [type(event) for event in driver.events]
    assert kinds == [Partial, Eou, Final]
    eou, final = driver.events[1:]
    assert isinstance(eou, Eou)
    assert isinstance(final, Final)
    assert (eou.utterance, final.utterance, final.reason) == (0, 0, Reason.EOU)
    assert final.eou_ms == eou.audio_ms
    assert final.speech_end_ms == final.words[-1].end_ms
    # Six frames of silence after the token on frame 4; the end token on frame 8 lies among them.
    assert final.audio_ms - eou.audio_ms == 2 * FRAME_MS


def test_a_resumed_utterance_keeps_its_number_and_its_text_grows() -> None:
    driver = Driver({4: [ONE], 7: [EOU], 9: [TWO], 12: [EOU]}, endpointing=NUMBERS)
    driver.push(3_000)
    assert [type(event) for event in driver.events] == [Partial, Eou, Resumed, Partial, Eou, Final]
    assert driver.texts() == ["one", "one two"]
    assert driver.finals() == [(0, "one two", Reason.EOU)]
    assert {event.utterance for event in driver.events if isinstance(event, Eou | Resumed)} == {0}


def test_a_piece_without_a_word_mark_after_an_eager_end_begins_a_word() -> None:
    driver = Driver({4: [TH], 6: [EOU], 8: [REE], 9: [LETTER_V], 12: [EOU]}, endpointing=NUMBERS)
    driver.push(3_000)
    assert driver.finals() == [(0, "th reev", Reason.EOU)]


def test_the_first_token_of_the_next_utterance_may_equal_the_last_of_the_one_before() -> None:
    script: Script = {4: [ONE], 6: [EOU], 20: [ONE, TWO], 22: [EOU], 40: [TWO]}
    driver = Driver(script, endpointing=NUMBERS)
    driver.push(4_000)
    driver.finalize()
    assert [text for _, text, _ in driver.finals()] == ["one", "one two", "two"]


def test_many_utterances_each_get_one_final_with_its_number() -> None:
    script: Script = {}
    for index in range(200):
        script[25 * index + 3], script[25 * index + 8] = [ONE], [EOU]
    driver = Driver(script, endpointing=NUMBERS)
    driver.push(200 * 25 * FRAME_MS)
    assert driver.finals() == [(index, "one", Reason.EOU) for index in range(200)]


def test_a_backchannel_ends_at_once_without_an_eager_event() -> None:
    driver = Driver({4: [ONE], 5: [EOB], 6: [TWO], 8: [EOU]}, endpointing=NUMBERS)
    driver.push(2_000)
    assert driver.finals() == [(0, "one", Reason.BACKCHANNEL), (1, "two", Reason.EOU)]
    assert [event.utterance for event in driver.events if isinstance(event, Eou)] == [1]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([ONE, TH, REE, MARK, EOU, EOB]), max_size=4), max_size=60))
def test_control_tokens_are_never_text(tokens: list[list[int]]) -> None:
    """And a final made of nothing else is not sent."""
    driver = Driver(dict(enumerate(tokens)), endpointing=NUMBERS)
    driver.push(80 * 80)
    driver.end()
    for _, text, _ in driver.finals():
        assert text
        assert set(text) <= set("one three")


@pytest.mark.parametrize("delay_ms", [500, 1_300, 4_000])
def test_the_final_comes_at_the_delay_asked_for_within_two_steps(delay_ms: int) -> None:
    config = replace(DEFAULT, eou_silence_ms=delay_ms)
    driver = Driver({10: [ONE], 14: [EOU], 18: [EOU], 40: [EOU]}, endpointing=config, voice=LoudIsVoice())
    driver.push(10_000)
    final = only_final(driver)
    assert final.reason is Reason.EOU
    assert abs(final.audio_ms - final.words[-1].end_ms - delay_ms) <= 160


@pytest.mark.parametrize("eou_frame", [None, 14])
def test_a_voice_that_never_stops_cannot_keep_an_utterance_open(eou_frame: int | None) -> None:
    """Babble, music, fans: whatever the detector says of them."""
    script: Script = {10: [ONE]} | ({eou_frame: [EOU]} if eou_frame else {})
    driver = Driver(script, endpointing=NUMBERS, voice=LoudIsVoice())
    driver.push(16_000, LOUD)
    final = only_final(driver)
    hold = NUMBERS.eou_hold_ms + NUMBERS.eou_silence_ms
    if eou_frame is None:
        hold = NUMBERS.silence_hold_ms + NUMBERS.silence_ms
    assert final.reason is (Reason.EOU if eou_frame else Reason.SILENCE)
    assert final.audio_ms - final.words[-1].end_ms <= hold


def test_a_voice_that_resumes_holds_the_commit_until_its_word_comes() -> None:
    """The next word's sound is there, its token is not yet: the turn must not be cut."""
    script: Script = {4: [ONE], 8: [EOU], 16: [TWO], 20: [EOU]}
    deaf = Driver(script, endpointing=NUMBERS)
    deaf.push(4_000)
    assert [text for _, text, _ in deaf.finals()] == ["one", "two"]
    listening = Driver(script, endpointing=NUMBERS, voice=LoudIsVoice())
    listening.push(700)
    listening.push(700, LOUD)
    listening.push(2_600)
    assert [text for _, text, _ in listening.finals()] == ["one two"]


def test_with_the_detector_off_a_voice_holds_nothing() -> None:
    config = replace(NUMBERS, vad=False)
    driver = Driver({4: [ONE], 8: [EOU]}, endpointing=config, voice=LoudIsVoice())
    driver.push(4_000, LOUD)
    silent = Driver({4: [ONE], 8: [EOU]}, endpointing=config)
    silent.push(4_000)
    assert driver.events == silent.events


def test_the_detector_never_keeps_audio_from_the_recogniser() -> None:
    """What is silence to it is recognised all the same."""
    driver = Driver({4: [ONE], 5: [TWO], 8: [EOU]}, endpointing=NUMBERS, voice=LoudIsVoice())
    driver.push(3_000, level=0.001)
    assert [text for _, text, _ in driver.finals()] == ["one two"]


def test_the_longest_utterance_is_cut_at_words_and_none_is_lost() -> None:
    """Talk without a breath: a word of two pieces every third of a second, for four minutes."""
    script: Script = {}
    for frame in range(0, 3_000, 4):
        script[frame], script[frame + 1] = [TH], [REE]
    config = replace(NUMBERS, max_utterance_ms=20_000)
    driver = Driver(script, endpointing=config, voice=LoudIsVoice())
    driver.push(240_000, LOUD)
    driver.end()
    finals = [event for event in driver.events if isinstance(event, Final)]
    assert " ".join(final.text for final in finals) == " ".join(["three"] * 750)
    assert {final.reason for final in finals[:-1]} == {Reason.MAX_LENGTH}
    lengths = [final.audio_ms - final.words[0].start_ms for final in finals[:-1]]
    assert all(20_000 <= length <= 20_000 + 4 * FRAME_MS for length in lengths)
    # To the model the speech goes on.
    assert driver.restarts == []


# Commands


@pytest.mark.parametrize("eou", [9, 10, 11, 12, 13, 14, 40])
def test_a_forced_final_and_the_models_own_end_give_one_final(eou: int) -> None:
    """The end token comes before, with, or after the request."""
    driver = Driver({6: [ONE], eou: [EOU]}, endpointing=NUMBERS)
    driver.push(960)
    driver.finalize()
    driver.push(5_000)
    assert driver.finals() == [(0, "one", Reason.FINALIZE)]


def test_finalize_without_anything_pending_is_answered_at_once() -> None:
    driver = Driver({4: [ONE], 8: [EOU]}, endpointing=NUMBERS)
    driver.finalize()
    assert (driver.finals(), driver.frame) == ([(0, "", Reason.FINALIZE)], 0)
    driver.push(3_000)
    assert driver.finals()[1:] == [(1, "one", Reason.EOU)]
    driver.finalize()
    after = driver.frame
    driver.finalize()
    assert driver.finals()[2:] == [(2, "", Reason.FINALIZE), (3, "", Reason.FINALIZE)]
    assert driver.frame == after


def test_no_audio_for_long_commits_what_is_pending_and_the_stream_goes_on() -> None:
    driver = Driver({4: [ONE]}, endpointing=NUMBERS)
    driver.push(600)
    driver.no_audio()
    driver.no_audio()
    assert driver.finals() == [(0, "one", Reason.NO_AUDIO)]
    driver.script = {driver.frame + 4: [TWO], driver.frame + 6: [EOU]}
    driver.push(3_000)
    assert driver.finals()[1:] == [(1, "two", Reason.EOU)]


def test_no_audio_with_nothing_pending_says_nothing() -> None:
    driver = Driver({}, endpointing=NUMBERS)
    driver.push(600)
    driver.no_audio()
    assert driver.events == []


def test_cancel_drops_the_utterance_and_the_next_one_has_a_number_of_its_own() -> None:
    driver = Driver({4: [ONE], 14: [ONE]}, endpointing=NUMBERS)
    driver.push(960)
    driver.cancel()
    assert driver.events[-1] == Cancelled(960)
    driver.script = {driver.frame + 3: [TWO], driver.frame + 6: [EOU]}
    driver.push(3_000)
    assert driver.finals() == [(1, "two", Reason.EOU)]
    assert driver.restarts, "the prediction network must forget the cancelled words"
    assert [event.text for event in driver.events if isinstance(event, Partial)] == ["one", "two"]


def test_cancel_drops_audio_that_waits_and_a_step_that_runs() -> None:
    driver = Driver({2: [ONE], 4: [ONE]}, endpointing=NUMBERS)
    driver.session.push(np.zeros(32_000, np.float32))
    step = driver.session.next_step(0, 2)
    driver.frame += step.frames
    driver.session.finalize()
    events = driver.session.cancel()
    assert [type(event) for event in events] == [Final, Cancelled]
    assert driver.session.apply([]) == []
    driver.script = {}
    driver.run()
    assert driver.session.backlog_samples == 0
    driver.script = {driver.frame + 3: [TWO], driver.frame + 6: [EOU]}
    driver.push(3_000)
    final = only_final(driver)
    assert final.text == "two"
    # The dropped audio counts in all times.
    assert 2_000 <= final.words[0].start_ms <= 2_000 + 5 * FRAME_MS
    driver.end()
    assert driver.events[-1] == Done(5_000, 1)


def test_cancel_with_nothing_pending_and_after_the_end() -> None:
    driver = Driver({}, endpointing=NUMBERS)
    driver.cancel()
    assert driver.events == [Cancelled(0)]
    assert driver.frame == 0
    driver.end()
    driver.cancel()
    assert driver.events == [Cancelled(0), Done(0, 0)]


def test_numbers_changed_in_mid_stream_hold_for_the_audio_after_them() -> None:
    script: Script = {4: [ONE], 7: [EOU], 40: [TWO], 43: [EOU]}
    driver = Driver(script, endpointing=NUMBERS)
    driver.push(1_600)
    driver.session.configure(replace(NUMBERS, eou_silence_ms=1_600))
    driver.push(5_000)
    first, second = [event for event in driver.events if isinstance(event, Final)]
    assert first.audio_ms - first.words[-1].end_ms == 480
    assert second.audio_ms - second.words[-1].end_ms == 1_600


# The beginning of speech


def test_speech_started_comes_before_the_first_partial_and_once_for_each_beginning() -> None:
    config = replace(NUMBERS, speech_started=True)
    driver = Driver(
        {9: [ONE], 12: [TWO], 16: [EOU], 60: [ONE], 63: [EOU]}, endpointing=config, voice=LoudIsVoice()
    )
    driver.push(400)
    driver.push(1_000, LOUD)
    driver.push(5_000)
    started = [event for event in driver.events if isinstance(event, SpeechStarted)]
    # The second word came without a voice: the model knows better.
    assert len(started) == 2
    assert isinstance(driver.events[0], SpeechStarted)
    assert 400 <= started[0].audio_ms <= 560
    at = driver.events.index(started[1])
    assert isinstance(driver.events[at + 1], Partial)


def test_speech_started_is_sent_on_request_only() -> None:
    driver = Driver({9: [ONE], 16: [EOU]}, endpointing=NUMBERS, voice=LoudIsVoice())
    driver.push(4_000, LOUD)
    assert not [event for event in driver.events if isinstance(event, SpeechStarted)]


@pytest.mark.parametrize("largest", [2, 16])
@pytest.mark.parametrize("preset", [Preset.CONVERSATION, Preset.COMMAND])
def test_a_word_at_any_distance_from_the_end_before_it_is_kept(preset: Preset, largest: int) -> None:
    """On the frame of the end token, on the frame of the commit, on any between and after: in its own place, once."""
    ends = set()
    for distance in range(16):
        script: Script = {4: [ONE], 6: [EOU]}
        script[6 + distance] = [*script.get(6 + distance, ()), TWO]
        driver = Driver(script, largest, PRESETS[preset])
        driver.push(2_500)
        driver.end()
        finals = [event for event in driver.events if isinstance(event, Final)]
        assert " ".join(final.text for final in finals) == "one two", distance
        words = [word for final in finals for word in final.words]
        assert abs(words[1].start_ms - words[0].start_ms - (2 + distance) * FRAME_MS) <= 1
        assert words[0].end_ms <= words[1].start_ms
        ends.add(len(finals))
    assert ends == {1, 2}


# Any fragmentation, any step size: the same events


def until_end(tokens: list[int]) -> list[int]:
    """An end token ends its frame, as in the decoder."""
    for index, token in enumerate(tokens):
        if token in (EOU, EOB):
            return tokens[: index + 1]
    return tokens


SCRIPTS = st.dictionaries(
    st.integers(0, 70),
    st.lists(st.sampled_from([ONE, TWO, TH, REE, MARK, EOU, EOB]), max_size=3).map(until_end),
)
CONFIGS = st.builds(
    replace,
    st.just(NUMBERS),
    eou_silence_ms=st.integers(0, 1_000),
    eou_hold_ms=st.integers(0, 1_000),
    silence_ms=st.integers(0, 2_000),
    silence_hold_ms=st.integers(0, 2_000),
    max_utterance_ms=st.integers(1_000, 3_000),
    vad=st.booleans(),
    speech_started=st.booleans(),
)
COMMANDS = ("finalize", "no_audio", "configure", "push")


def run(
    script: Script,
    config: EndpointingConfig,
    other: EndpointingConfig,
    parts: list[tuple[int, float, str]],
    largest: int,
    cuts: list[int],
) -> list[Event]:
    """Audio parts with a command behind each, pushed in pieces of ``cuts`` milliseconds."""
    driver = Driver(script, largest, config, LoudIsVoice())
    turn = 0
    for milliseconds, level, command in parts:
        while milliseconds > 0:
            piece = min(milliseconds, cuts[turn % len(cuts)]) if cuts else milliseconds
            driver.push(piece, level)
            milliseconds, turn = milliseconds - piece, turn + 1
        if command == "finalize":
            driver.finalize()
        elif command == "no_audio":
            driver.no_audio()
        elif command == "configure":
            driver.session.configure(other)
    driver.end()
    return driver.events


@settings(deadline=None)
@given(
    script=SCRIPTS,
    config=CONFIGS,
    other=CONFIGS,
    parts=st.lists(
        st.tuples(st.integers(0, 2_500), st.sampled_from([0.0, LOUD]), st.sampled_from(COMMANDS)), max_size=5
    ),
    cuts=st.lists(st.integers(1, 700), max_size=5),
    largest=st.sampled_from([2, 4, 8, 16]),
)
def test_decisions_depend_neither_on_cuts_nor_on_step_sizes(
    script: Script,
    config: EndpointingConfig,
    other: EndpointingConfig,
    parts: list[tuple[int, float, str]],
    cuts: list[int],
    largest: int,
) -> None:
    expected = run(script, config, other, parts, 2, [])
    assert run(script, config, other, parts, largest, cuts) == expected


@settings(deadline=None)
@given(script=SCRIPTS, config=CONFIGS, parts=st.lists(st.integers(0, 2_500), max_size=4))
def test_one_final_for_each_utterance_and_text_that_only_grows(
    script: Script, config: EndpointingConfig, parts: list[int]
) -> None:
    events = run(script, config, config, [(part, 0.0, "finalize") for part in parts], 2, [])
    text: dict[int, str] = {}
    done: list[int] = []
    last = 0
    for event in events:
        if isinstance(event, Done | SpeechStarted | Cancelled):
            continue
        assert event.utterance == len(done), "an utterance begins when the one before has its final"
        if isinstance(event, Partial | Final):
            assert event.text.startswith(text.get(event.utterance, ""))
            assert "  " not in event.text
            assert event.text == event.text.strip()
            assert event.text == " ".join(word.text for word in event.words)
            text[event.utterance] = event.text
            times = [time for word in event.words for time in (word.start_ms, word.end_ms)]
            assert times == sorted(times)
            assert not times or (last <= times[0] and times[-1] <= sum(parts))
        if isinstance(event, Final):
            assert event.text or event.reason is Reason.FINALIZE
            done.append(event.utterance)
            last = event.words[-1].end_ms if event.words else last
    assert done == list(range(len(done)))


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(1, 1_500)),
        st.tuples(st.sampled_from(["begin", "apply", "finalize", "no_audio", "cancel"]), st.just(0)),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(script=SCRIPTS, operations=OPERATIONS)
def test_any_order_of_commands_and_running_steps_is_survived(
    script: Script, operations: list[tuple[str, int]]
) -> None:
    """Commands come while a step runs, and before, and after: every request is answered, numbers never repeat."""
    driver = Driver(script, endpointing=NUMBERS, voice=LoudIsVoice())
    session, running, asked, received = driver.session, 0, {"finalize": 0, "cancel": 0}, 0
    for name, milliseconds in [*operations, ("apply", 0)]:
        if name == "push":
            session.push(np.zeros(milliseconds * 16, np.float32))
            received += milliseconds
        elif name == "begin" and not running and session.ready_frames:
            running = session.next_step(0, 2).frames
        elif name == "apply" and running:
            emissions = [
                Emission(token, frame, 0.5)
                for frame in range(running)
                for token in script.get(driver.frame + frame, ())
            ]
            driver.frame, running = driver.frame + running, 0
            driver.events += session.apply(emissions)
        elif name == "finalize":
            driver.events += session.finalize()
        elif name == "no_audio":
            driver.events += session.no_audio()
        elif name == "cancel":
            driver.events += session.cancel()
        if name in asked:
            asked[name] += 1
    driver.run()
    driver.end()
    assert driver.events[-1] == Done(received, len([text for _, text, _ in driver.finals() if text]))
    reasons = [reason for *_, reason in driver.finals()]
    assert reasons.count(Reason.FINALIZE) == asked["finalize"]
    assert len([event for event in driver.events if isinstance(event, Cancelled)]) == asked["cancel"]
    numbers = [number for number, *_ in driver.finals()]
    assert numbers == sorted(set(numbers))
    assert session.backlog_samples == 0
    times = [word.start_ms for e in driver.events if isinstance(e, Final) for word in e.words]
    assert times == sorted(times)
    assert not times or times[-1] <= received
