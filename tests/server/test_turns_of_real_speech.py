"""Turns in real recordings with the embedded model: ends, pauses, noise, silence, levels. What users report most."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile

from parakeet_live.engine.offline import Transcriber
from parakeet_live.session.endpoint_config import DEFAULT, PRESETS, EndpointingConfig, Preset
from parakeet_live.session.events import Eou, Event, Final, Reason, Resumed, SpeechStarted
from parakeet_models.bundle import Bundle
from parakeet_models.mel import Float32
from support.sounds import RATE, at_level, babble, hold_music, room_tone, silence, white_noise

DATA = Path(__file__).parents[1] / "data"
ROWS = [json.loads(line) for line in (DATA / "manifest.jsonl").open(encoding="utf-8")]
CLIPS: dict[str, Float32] = {
    row["id"]: soundfile.read(DATA / row["audio"], dtype="float32")[0] for row in ROWS
}
STRINGS = [CLIPS[row["id"]] for row in ROWS if row["kind"] == "digit-string"]
TEXTS = [row["text"] for row in ROWS if row["kind"] == "digit-string"]
ONE_WORD = 1 / len(" ".join(TEXTS).split())
"""What one word of all of them counts in a word error rate. The model is small: context can cost it a word."""
CLIP = CLIPS["fsddstr_jackson_10"]
OTHER = CLIPS["fsddstr_jackson_00"]
SEVEN = CLIPS["fsdd_jackson_7_0"]

Say = Callable[..., list[Event]]


@pytest.fixture(scope="module")
def transcriber(embedded: Bundle) -> Transcriber:
    return Transcriber(embedded, step_frames=16)


@pytest.fixture(scope="module")
def say(transcriber: Transcriber) -> Say:
    """All events of a stream of these parts."""

    def run(*parts: Float32, endpointing: EndpointingConfig = DEFAULT) -> list[Event]:
        return list(transcriber.stream(iter(parts), endpointing))

    return run


def finals(events: list[Event]) -> list[Final]:
    return [event for event in events if isinstance(event, Final)]


def texts(events: list[Event]) -> list[str]:
    return [final.text for final in finals(events)]


def joined(events: list[Event]) -> str:
    return " ".join(text for text in texts(events) if text)


def sound_of(samples: Float32) -> tuple[int, int]:
    """Where its sound begins and ends, in samples: within 30 dB of its loudest 10 ms."""
    power = np.square(samples[: len(samples) // 160 * 160].reshape(-1, 160)).mean(1)
    loud = np.flatnonzero(power >= power.max() / 1_000)
    return int(loud[0]) * 160, (int(loud[-1]) + 1) * 160


def trimmed(samples: Float32) -> Float32:
    start, end = sound_of(samples)
    return samples[start:end]


def single_words() -> Iterator[Float32]:
    """Words cut out of the strings where there is a gap of 60 ms between them, and the one recorded alone."""
    yield trimmed(SEVEN)
    for clip in STRINGS:
        power = np.square(clip[: len(clip) // 160 * 160].reshape(-1, 160)).mean(1)
        loud = np.flatnonzero(power >= power.max() / 1_000)
        for run in np.split(loud, np.flatnonzero(np.diff(loud) > 6) + 1):
            if 20 <= len(run) <= 50:
                yield clip[run[0] * 160 : (run[-1] + 1) * 160]


WORDS = list(single_words())


# The head of an utterance


def test_the_first_word_is_the_same_with_the_detector_on_and_off(say: Say) -> None:
    """Soft beginnings after room tone: nothing may be gated away."""
    for word in WORDS:
        parts = (room_tone(2, -55), word, silence(1.5))
        on, off = say(*parts), say(*parts, endpointing=replace(DEFAULT, vad=False))
        assert texts(on) == texts(off)


@pytest.mark.parametrize("seconds", [4, 60])
@pytest.mark.parametrize("lead", [silence, room_tone, hold_music])
def test_a_long_lead_gives_no_words_and_the_sentence_after_it_is_whole(
    say: Say, lead: Callable[[float], Float32], seconds: int
) -> None:
    expected = texts(say(CLIP, silence(2)))
    events = say(lead(seconds), CLIP, silence(2))
    assert texts(events) == expected
    assert finals(events)[0].words[0].start_ms >= 1_000 * seconds


# The end of an utterance


def test_the_last_word_is_whole_wherever_in_a_step_the_audio_ends(say: Say) -> None:
    """Cut within 20 ms of the last sound, whole steps and a sample more or less."""
    for clip in STRINGS:
        end = sound_of(clip)[1]
        expected = texts(say(clip[:end], silence(2)))
        for extra in (0, 40, 160, 200, 319):
            assert texts(say(clip[:end], silence(extra / 1_000))) == expected
    whole = CLIP[: sound_of(CLIP)[1]]
    expected = texts(say(whole, silence(2)))
    steps = -(-(len(whole) - 1_480) // 2_560)
    for length in (1_480 + 2_560 * steps + odd for odd in (-1, 0, 1)):
        assert texts(say(np.pad(whole, (0, length - len(whole))))) == expected


def test_nothing_is_invented_behind_a_cut(say: Say) -> None:
    """Clips that stop in mid-phrase: no word may begin after the end of the audio's sound."""
    for clip in STRINGS:
        for seconds in np.arange(0.4, len(clip) / RATE, 0.3):
            part = clip[: round(seconds * RATE)]
            for final in finals(say(part)):
                assert final.words[-1].start_ms <= len(part) * 1_000 // RATE


@pytest.mark.parametrize("delay_ms", [500, 1_300, 4_000])
def test_the_final_comes_at_the_delay_asked_for(say: Say, delay_ms: int) -> None:
    config = replace(DEFAULT, eou_silence_ms=delay_ms)
    (final,) = finals(say(CLIP, room_tone(10, -60), endpointing=config))
    assert final.reason is Reason.EOU
    assert final.speech_end_ms is not None
    assert final.eou_ms is not None
    # Not before the model's own end, whose delay is the model's.
    due = max(delay_ms, final.eou_ms - final.speech_end_ms)
    assert abs(final.audio_ms - final.speech_end_ms - due) <= 320


@pytest.mark.parametrize("preset", Preset)
@pytest.mark.parametrize("background", ["babble", "music", "fan"])
def test_noise_behind_a_sentence_cannot_keep_it_open(say: Say, background: str, preset: Preset) -> None:
    """Whether the model says that it is over or not: within the silence and what a voice may add to it."""
    noise = {
        "babble": lambda: babble(STRINGS, 15, -35),
        "music": lambda: hold_music(15),
        "fan": lambda: room_tone(15, -35),
    }[background]()
    first = finals(say(CLIP, noise, endpointing=PRESETS[preset]))[0]
    longest = PRESETS[preset].silence_ms + PRESETS[preset].silence_hold_ms
    assert first.reason in (Reason.EOU, Reason.VAD, Reason.SILENCE)
    assert first.audio_ms - first.words[-1].end_ms <= longest


def pauses(clips: list[Float32], pause: float) -> list[Float32]:
    """Parts with a pause between each two, and silence behind."""
    parts: list[Float32] = []
    for clip in clips:
        parts += [trimmed(clip), silence(pause)]
    return [silence(0.3), *parts[:-1], silence(3)]


@pytest.mark.parametrize(
    ("preset", "pause"),
    [
        (Preset.CONVERSATION, 0.5),
        (Preset.TELEPHONE_DIGITS, 1.0),
        (Preset.DICTATION, 1.5),
    ],
)
def test_a_pause_that_the_preset_allows_does_not_end_the_turn(say: Say, preset: Preset, pause: float) -> None:
    events = say(*pauses([OTHER, CLIP, OTHER], pause), endpointing=PRESETS[preset])
    assert len(finals(events)) == 1
    assert finals(events)[0].reason is Reason.EOU


def test_pauses_in_mid_sentence_lose_no_word(say: Say) -> None:
    """500 to 800 ms of thinking: joined over the finals the words are no worse than without the pause."""
    spoken = [" ".join(TEXTS)] * 3
    heard = [joined(say(*pauses(STRINGS, pause))) for pause in (0.5, 0.65, 0.8)]
    apart = jiwer.wer(TEXTS, [joined(say(clip, silence(2))) for clip in STRINGS])
    assert jiwer.wer(spoken, heard) <= apart + ONE_WORD, heard


def test_finals_lose_no_word_that_begins_while_the_model_ends_the_one_before(say: Say) -> None:
    """Groups 200 to 600 ms apart: the model's end falls on every place around the next word, and finals do."""
    for pause in np.arange(0.2, 0.61, 0.05):
        parts = pauses(STRINGS, float(pause))
        cut, whole = (
            say(*parts, endpointing=PRESETS[preset]) for preset in (Preset.COMMAND, Preset.DICTATION)
        )
        assert joined(cut) == joined(whole)
        assert len(finals(whole)) == 1


def test_a_number_read_in_groups_keeps_every_digit_and_longer_silence_cuts_less(say: Say) -> None:
    turns = {}
    for preset in (Preset.COMMAND, Preset.TELEPHONE_DIGITS):
        turns[preset] = 0
        for pause in (0.3, 0.5, 0.7):
            events = say(*pauses(STRINGS, pause), endpointing=PRESETS[preset])
            assert jiwer.wer(" ".join(TEXTS), joined(events)) <= 0.3
            turns[preset] += len(finals(events))
    assert 3 <= turns[Preset.TELEPHONE_DIGITS] < turns[Preset.COMMAND]


def test_every_one_word_answer_gets_its_final(say: Say) -> None:
    for word in WORDS:
        alone = texts(say(word))
        events = say(silence(1.5), word, silence(1.5))
        assert len(finals(events)) == len(alone) == 1
        assert texts(events)[0]
    assert texts(say(silence(1.5), trimmed(SEVEN), silence(1.5))) == ["seven"]


def test_long_talk_is_cut_between_words_and_joins_to_the_text_of_one_decode(say: Say) -> None:
    talk = [trimmed(clip) for clip in STRINGS] * 6
    never = replace(DEFAULT, eou_silence_ms=60_000, silence_ms=60_000, max_utterance_ms=600_000)
    whole = say(*talk, endpointing=never)
    cut = say(*talk, endpointing=replace(never, max_utterance_ms=10_000))
    assert len(finals(whole)) == 1
    assert len(finals(cut)) >= 4
    assert {final.reason for final in finals(cut)[:-1]} == {Reason.MAX_LENGTH}
    assert joined(cut) == joined(whole)


# The same again


def test_the_same_word_twice_gives_two_finals(say: Say) -> None:
    seven = trimmed(SEVEN)
    parts = (silence(0.3), seven, silence(0.7), seven, silence(2))
    two = finals(say(*parts, endpointing=PRESETS[Preset.COMMAND]))
    assert [(final.utterance, final.text) for final in two] == [(0, "seven"), (1, "seven")]
    assert two[0].words[0].start_ms < two[1].words[0].start_ms
    assert texts(say(silence(0.3), seven, silence(1.5), seven, silence(2))) == ["seven", "seven"]
    # Inside one turn both stay as well.
    assert texts(say(*parts, endpointing=PRESETS[Preset.DICTATION])) == ["seven seven"]


def test_finals_joined_are_the_transcript_once(say: Say) -> None:
    parts = [part for clip in STRINGS * 3 for part in (clip, silence(1.5))]
    heard = texts(say(*parts))
    assert len(heard) == len(STRINGS) * 3
    assert jiwer.wer(TEXTS * 3, heard) <= 0.2, heard


# State


def test_the_last_of_many_utterances_is_as_good_as_the_first(say: Say) -> None:
    events = say(*[part for _ in range(15) for part in (CLIP, silence(2))])
    assert texts(events) == texts(say(CLIP, silence(2))) * 15


@pytest.mark.parametrize("seconds", [5, 30, 120])
@pytest.mark.parametrize("pause", [silence, room_tone])
def test_speech_after_a_long_pause_is_whole(
    say: Say, pause: Callable[[float], Float32], seconds: int
) -> None:
    before, after = texts(say(OTHER, pause(seconds), CLIP, silence(2)))
    assert before == joined(say(OTHER, silence(2)))
    assert after.endswith(joined(say(CLIP, silence(2))))


def test_one_session_is_as_good_as_a_session_for_each_sentence(say: Say) -> None:
    apart = [joined(say(clip, silence(2))) for clip in STRINGS] * 3
    together = texts(say(*[part for clip in STRINGS * 3 for part in (clip, silence(2))]))
    assert jiwer.wer(TEXTS * 3, together) <= jiwer.wer(TEXTS * 3, apart) + ONE_WORD


def test_no_step_size_changes_a_word(embedded: Bundle) -> None:
    audio = np.concatenate([part for clip in STRINGS for part in (clip, silence(0.4))])
    heard = [
        [
            (final.text, final.audio_ms, final.reason, [(word.start_ms, word.end_ms) for word in final.words])
            for final in finals(list(Transcriber(embedded, size).stream([audio])))
        ]
        for size in embedded.manifest.step_sizes
    ]
    assert all(other == heard[0] for other in heard[1:])


# Phantoms


@pytest.mark.parametrize("tone", ["zeros", "room", "hiss"])
def test_silence_gives_no_words_and_no_finals(say: Say, tone: str) -> None:
    """Two minutes of each here; docs/endpointing.md speaks of ten."""
    quiet = {"zeros": silence(120), "room": room_tone(120, -60), "hiss": white_noise(120, -70)}[tone]
    events = say(quiet, CLIP, silence(2))
    assert texts(events) == texts(say(CLIP, silence(2)))


@pytest.mark.parametrize("offset", [0.05, 0.2])
def test_a_constant_offset_changes_nothing(say: Say, offset: float) -> None:
    speech = np.concatenate([silence(1), CLIP, silence(2)])
    assert texts(say(np.clip(speech * 0.7 + offset, -1, 1))) == texts(say(speech))
    assert texts(say(np.full(10 * RATE, offset, np.float32))) == []
    drift = np.linspace(0, offset, len(speech), dtype=np.float32)
    assert texts(say(speech * 0.7 + drift)) == texts(say(speech))


def test_quiet_speech_is_recognised_and_its_turn_ends(say: Say) -> None:
    loud, quiet = ([finals(say(at_level(clip, dbfs), silence(2))) for clip in STRINGS] for dbfs in (-20, -40))
    assert [len(turn) for turn in quiet] == [1] * len(STRINGS)
    expected = [turn[0].text for turn in loud]
    assert jiwer.wer(expected, [turn[0].text for turn in quiet]) <= 2 * ONE_WORD
    # Further down words may go missing, but the detector decides nothing.
    low = (at_level(CLIP, -55), silence(2))
    assert texts(say(*low)) == texts(say(*low, endpointing=replace(DEFAULT, vad=False)))


# The eager view


def test_events_of_a_turn_come_in_order(say: Say) -> None:
    config = replace(PRESETS[Preset.TELEPHONE_DIGITS], speech_started=True)
    events = say(*pauses(STRINGS[:2], 0.9), endpointing=config)
    kinds = [type(event) for event in events]
    assert kinds[0] is SpeechStarted
    assert kinds.index(Eou) < kinds.index(Resumed) < kinds.index(Final)
    started = events[0]
    assert isinstance(started, SpeechStarted)
    assert abs(started.audio_ms - 300) <= 320
    assert started.audio_ms <= finals(events)[0].words[0].end_ms
