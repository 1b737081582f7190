"""The session as a state machine, driven by scripted emissions instead of a network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.session.events import Done, Final, Reason
from parakeet_live.session.session import Session
from parakeet_live.session.timeline import Timeline
from parakeet_live.session.utterance import Utterance
from support.scripted import (
    AT_ONCE,
    BYTE1,
    BYTE2,
    EOB,
    EOU,
    LETTER_V,
    MANIFEST,
    MARK,
    ONE,
    REE,
    TH,
    TWO,
    UNK,
    VOCABULARY,
    Driver,
    Script,
)


def test_words_after_eou_in_the_same_step_belong_to_the_next_utterance() -> None:
    driver = Driver({4: [ONE, EOU], 5: [TWO]}, endpointing=AT_ONCE)
    driver.push(1_000)
    driver.end()
    assert driver.finals() == [(0, "one", Reason.EOU), (1, "two", Reason.END)]
    assert driver.texts() == ["one", "two"]


def test_two_identical_utterances_give_two_finals() -> None:
    driver = Driver({2: [ONE], 4: [EOU], 18: [ONE], 20: [EOU]})
    driver.push(3_000)
    assert driver.finals() == [(0, "one", Reason.EOU), (1, "one", Reason.EOU)]


def test_eou_without_words_gives_nothing_and_ids_stay_consecutive() -> None:
    driver = Driver({1: [EOU], 3: [EOU], 6: [ONE], 7: [EOU], 19: [EOU], 20: [TWO], 21: [EOU]})
    driver.push(3_000)
    assert driver.finals() == [(0, "one", Reason.EOU), (1, "two", Reason.EOU)]


def test_backchannel_ends_the_utterance_and_is_never_text() -> None:
    driver = Driver({2: [ONE], 3: [EOB], 5: [EOB], 6: [TWO], 8: [EOU]})
    driver.push(2_000)
    assert driver.finals() == [(0, "one", Reason.BACKCHANNEL), (1, "two", Reason.EOU)]


def test_one_partial_per_frame_that_changed_the_text() -> None:
    driver = Driver({2: [TH, REE, ONE], 3: [MARK], 4: [LETTER_V], 5: []})
    driver.push(1_000)
    assert driver.texts() == ["three one", "three one v"]


def test_unknown_piece_is_visible_and_bytes_show_when_complete() -> None:
    driver = Driver({1: [ONE], 2: [UNK], 4: [MARK, BYTE1], 6: [BYTE2], 8: [EOU]})
    driver.push(2_000)
    assert driver.texts() == ["one", "one⁇", "one⁇ é"]


def test_end_after_end_and_audio_after_end_change_nothing() -> None:
    driver = Driver({})
    driver.push(333)
    driver.end()
    driver.end()
    driver.push(1_000)
    driver.finalize()
    assert driver.events == [Done(333, 0)]
    assert driver.session.done


def test_a_stream_without_audio_has_no_words_whatever_the_model_says() -> None:
    driver = Driver({frame: [ONE] for frame in range(40)})
    driver.end()
    assert driver.events == [Done(0, 0)]


@pytest.mark.parametrize("milliseconds", [1, 79, 80, 81, 92, 93, 159, 160, 161, 252, 253, 320, 1_999])
def test_the_flush_hears_all_audio_whatever_its_length(milliseconds: int) -> None:
    # The frame that covers the last sample, emitted only while flushing.
    last = (milliseconds * 16 - 1) // 1280
    driver = Driver({last: [TWO]})
    driver.push(milliseconds)
    driver.end()
    assert driver.finals() == [(0, "two", Reason.END)]
    word = next(e for e in driver.events if isinstance(e, Final)).words[0]
    assert 0 <= word.start_ms <= word.end_ms <= milliseconds
    assert isinstance(driver.events[-1], Done)
    assert driver.events[-1].audio_ms == milliseconds


def test_a_word_whose_first_piece_shows_nothing_lies_inside_the_audio_too() -> None:
    driver = Driver({0: [MARK], 2: [LETTER_V]})
    driver.push(1)
    driver.end()
    (word,) = next(e for e in driver.events if isinstance(e, Final)).words
    assert 0 <= word.start_ms <= word.end_ms <= 1


def test_the_flush_stops_at_the_models_own_end() -> None:
    driver = Driver({10: [ONE], 14: [EOU], 16: [TWO]})
    driver.push(900)
    driver.end()
    assert driver.finals() == [(0, "one", Reason.EOU)]
    assert driver.frame <= 16


def test_an_end_inside_the_audio_does_not_stop_the_flush() -> None:
    driver = Driver({4: [ONE], 8: [EOU], 12: [TWO]})
    driver.push(930)
    driver.end()
    assert driver.finals() == [(0, "one two", Reason.END)]


def test_finalize_answers_once_restarts_the_prediction_network_and_keeps_the_clock() -> None:
    driver = Driver({5: [ONE]})
    driver.push(500)
    driver.finalize()
    assert driver.finals() == [(0, "one", Reason.FINALIZE)]
    flushed = driver.frame
    driver.script = {flushed + 2: [TWO], flushed + 3: [EOU]}
    driver.push(1_500)
    assert driver.restarts == [flushed]
    final = driver.events[-1]
    assert isinstance(final, Final)
    assert (final.utterance, final.text) == (1, "two")
    # The model has heard 1480 samples for its first two frames and 2560 for each two after; what comes next is the
    # client's sample 8000. Frame `flushed + 2` begins so many samples later.
    # A frame begins where the one before it ends: half a window past the middle of its last mel frame.
    ahead = (flushed + 1) * 1280 + 200 - (1480 + 2560 * (flushed // 2 - 1))
    assert final.words[0].start_ms == (500 * 16 + ahead) // 16


def test_utterance_ids_count_a_forced_final_without_text() -> None:
    driver = Driver({30: [ONE], 31: [EOU]})
    driver.push(100)
    driver.finalize()
    driver.push(3_000)
    assert driver.finals() == [(0, "", Reason.FINALIZE), (1, "one", Reason.EOU)]
    driver.end()
    assert driver.events[-1] == Done(3_100, 1)


def test_a_step_must_be_ready_and_the_one_before_applied() -> None:
    session = Session(MANIFEST, VOCABULARY)
    session.push(np.zeros(1_479, np.float32))
    assert session.ready_frames == 0
    with pytest.raises(ValueError, match="not ready"):
        session.next_step(0, 2)
    session.push(np.zeros(1 + 2 * 2_560, np.float32))
    assert session.ready_frames == 6
    session.next_step(0, 2)
    assert session.ready_frames == 0
    session.apply([])
    assert session.ready_frames == 4


SCRIPTS = st.dictionaries(
    st.integers(0, 40), st.lists(st.sampled_from([ONE, TWO, TH, REE, MARK, UNK, EOU, EOB]), max_size=4)
)


@settings(deadline=None)
@given(script=SCRIPTS, cuts=st.lists(st.integers(0, 400), max_size=20))
def test_events_do_not_depend_on_cuts(script: Script, cuts: list[int]) -> None:
    whole = Driver(script)
    whole.push(sum(cuts))
    whole.end()
    cut = Driver(script)
    for milliseconds in cuts:
        cut.push(milliseconds)
    cut.end()
    assert cut.events == whole.events


@settings(deadline=None)
@given(script=SCRIPTS, step=st.sampled_from([4, 8, 16]))
def test_events_do_not_depend_on_the_step_size(script: Script, step: int) -> None:
    small, large = Driver(script), Driver(script, step)
    for driver in (small, large):
        driver.push(5_000)
        driver.end()
    assert small.events == large.events


COMMANDS = st.lists(st.one_of(st.integers(1, 2_500), st.just("finalize")), max_size=8)


@settings(deadline=None)
@given(script=SCRIPTS, commands=COMMANDS, step=st.sampled_from([2, 4, 8, 16]))
def test_events_do_not_depend_on_when_the_engine_gets_round_to_them(
    script: Script, commands: list[int | str], step: int
) -> None:
    """Audio that waits behind a flush must not make its silence longer, however large the steps are."""
    prompt, late = Driver(script), Driver(script, step)
    for command in commands:
        if isinstance(command, int):
            prompt.push(command)
            late.session.push(np.zeros(command * 16, np.float32))
        else:
            prompt.finalize()
            late.events += late.session.finalize()
    prompt.end()
    late.end()
    assert late.events == prompt.events


def test_confidence_is_the_geometric_mean_of_the_tokens() -> None:
    utterance = Utterance(VOCABULARY)
    utterance.add(TH, 3, 0.9)
    utterance.add(REE, 4, 0.4)
    utterance.add(ONE, 5, 0.25)
    three, one = utterance.words(lambda frame: frame * 80, 9)
    assert three.confidence == pytest.approx(0.6)
    assert (three.start_ms, three.end_ms) == (240, 400)
    assert one.confidence == pytest.approx(0.25)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 3_000)), max_size=8), st.integers(0, 40_000))
def test_timeline_takes_inserted_silence_out_again(parts: list[tuple[int, int]], query: int) -> None:
    timeline = Timeline()
    client = 0
    expected: list[int] = []
    for audio, silence in parts:
        expected += range(client, client + audio)
        client += audio
        timeline.insert(len(expected), silence)
        expected += [client] * silence
    wanted = expected[query] if query < len(expected) else client + query - len(expected)
    assert timeline.client_position(query) == wanted
    timeline.forget_before(query)
    assert timeline.client_position(query) == wanted
