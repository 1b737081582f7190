"""The measures: text normalisation, word errors, ends of utterance, manifests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parakeet_live.engine.together import Heard
from parakeet_live.evaluation.endpoints import End, EndOfUtterance, judge_end
from parakeet_live.evaluation.manifest import ManifestError, read_manifest
from parakeet_live.evaluation.normalise import normalise
from parakeet_live.evaluation.speech import speech_end_ms
from parakeet_live.evaluation.words import WordCounts, compare, total
from parakeet_live.session.events import Eou, Final, Reason, Resumed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please enter your password, followed by the pound key.", None),
        ("It's  5:30 p.m.", "it is five thirty pm"),
        ("I can’t; I won't, I couldn't!", "i can not i will not i could not"),
        ("You cannot.", "you can not"),
        ("They're sure you'll see we've won", "they are sure you will see we have won"),
        ("Dr. Smith's file name", "doctor smiths filename"),
        ("1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("the 21st and the 12th, 30th", "the twenty first and the twelfth thirtieth"),
        ("3.5 %", "three point five percent"),
        ("$20", "twenty dollars"),
        ("0", "zero"),
        ("1234567890123", "one two three four five six seven eight nine zero one two three"),
        ("X-ray, Zed, Alpha", "xray z alfa"),
        ("", ""),
        ("...", ""),
    ],
)
def test_normalise(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "please enter your password followed by the pound key"
    assert normalise(text) == expected
    assert normalise(expected) == expected, "normalising twice changes nothing"


def test_digits_are_read_one_by_one_and_their_homophones_do_not_count() -> None:
    assert normalise("505 for 2", "digit-string") == "five zero five four two"
    assert normalise("too", "digit") == "two"
    assert normalise("for two", "prompt") == "for two"


@pytest.mark.parametrize(
    ("reference", "transcript", "expected"),
    [
        ("five zero five", "five zero five", WordCounts(3, 0, 0, 0)),
        ("five zero five", "five oh", WordCounts(1, 1, 1, 0)),
        ("five", "five five", WordCounts(1, 0, 0, 1)),
        ("five six", "", WordCounts(0, 0, 2, 0)),
        ("", "ghost word", WordCounts(0, 0, 0, 2)),
        ("", "", WordCounts()),
    ],
)
def test_compare(reference: str, transcript: str, expected: WordCounts) -> None:
    assert compare(reference, transcript) == expected


def test_the_rate_over_clips_weighs_words() -> None:
    counts = total([WordCounts(9, 1, 0, 0), WordCounts(0, 1, 0, 1)])
    assert counts.reference_words == 11
    assert counts.wer == pytest.approx(3 / 11)
    assert total([]).wer is None


def final(text: str, heard_ms: int, reason: Reason = Reason.EOU, *, live: bool = True) -> Heard:
    return Heard(Final(0, text, (), heard_ms - 100, reason), heard_ms, live)


def eou(heard_ms: int) -> Heard:
    return Heard(Eou(0, heard_ms - 100), heard_ms, live=True)


def resumed(heard_ms: int) -> Heard:
    return Heard(Resumed(0, heard_ms - 100), heard_ms, live=True)


def judged(*heard: Heard) -> EndOfUtterance:
    return judge_end(heard, clip_end_ms=1_000, speech_end_ms=900)


def test_a_found_end_is_timed_from_both_ends_in_both_views() -> None:
    end = judged(eou(1_100), final("five", 1_400))
    assert end.final == End(missed=False, early=False, delay_ms=400, delay_from_speech_ms=500)
    assert end.eager == End(missed=False, early=False, delay_ms=100, delay_from_speech_ms=200)


def test_an_end_inside_the_trailing_silence_of_the_clip_is_not_early() -> None:
    end = judged(eou(950), final("five", 950))
    assert end.eager == end.final == End(False, False, delay_ms=-50, delay_from_speech_ms=50)


def test_a_cut_is_early_even_when_the_real_end_is_found() -> None:
    end = judged(eou(400), final("five", 500), eou(1_200), final("six", 1_400))
    assert end.final == End(missed=False, early=True, delay_ms=400, delay_from_speech_ms=500)
    assert end.eager == End(missed=False, early=True, delay_ms=200, delay_from_speech_ms=300)


def test_a_split_after_the_speech_is_early() -> None:
    end = judged(eou(950), final("five", 950), eou(1_300), final("six", 1_400))
    assert end.final.early
    assert end.eager.early


def test_a_claim_that_is_taken_back_is_early_for_the_model_alone() -> None:
    end = judged(eou(950), resumed(1_050), eou(1_200), final("five six", 1_800))
    assert end.eager == End(missed=False, early=True, delay_ms=200, delay_from_speech_ms=300)
    assert not end.final.early


def test_an_end_before_the_speech_is_over_has_no_delay() -> None:
    end = judged(eou(700), final("five", 800))
    assert end.final == end.eager == End(missed=False, early=True, delay_ms=None, delay_from_speech_ms=None)


@pytest.mark.parametrize(
    "heard",
    [
        [],
        [final("five", 3_000, Reason.END, live=False)],
        [final("five", 3_000, live=False)],
        [final("five", 950), final("six", 3_000, Reason.END, live=False)],
    ],
)
def test_text_that_is_not_committed_within_the_silence_is_a_missed_end(heard: list[Heard]) -> None:
    end = judged(*heard)
    assert end.final.missed
    assert end.final.delay_ms is None


def test_a_final_without_a_claim_is_an_end_that_the_model_missed() -> None:
    end = judged(final("five", 2_100, Reason.SILENCE))
    assert end.eager.missed
    assert end.final == End(missed=False, early=False, delay_ms=1_100, delay_from_speech_ms=1_200)


def test_a_last_final_without_text_does_not_hide_the_end() -> None:
    end = judged(final("five", 1_400), final("", 3_000, Reason.END, live=False))
    assert not end.final.missed
    assert not end.final.early


def test_speech_ends_at_the_last_loud_window() -> None:
    samples = np.zeros(16_000, dtype=np.float32)
    samples[4_000:8_000] = 0.5
    samples[8_000:12_000] = 0.001  # 54 dB below
    assert speech_end_ms(samples, 16_000) == 500
    assert speech_end_ms(samples[:8_000], 16_000) == 500
    assert speech_end_ms(np.zeros(16_000, dtype=np.float32), 16_000) == 0
    assert speech_end_ms(np.empty(0, dtype=np.float32), 16_000) == 0


DATA = Path(__file__).parents[1] / "data"


def test_the_manifest_of_the_test_recordings() -> None:
    clips = read_manifest(DATA / "manifest.jsonl")
    assert {clip.kind for clip in clips} == {"digit", "digit-string", "read"}
    assert all(clip.audio.is_file() for clip in clips)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lists no recordings"),
        ("{", "line 1"),
        ('\n{"id": "a", "audio": "a.wav"}', "line 2: field 'text'"),
        ('{"id": "a", "audio": "nowhere.wav", "text": "five"}', "no audio file"),
    ],
)
def test_a_broken_manifest_is_explained(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_text(content)
    with pytest.raises(ManifestError, match=message):
        read_manifest(path)


def test_a_missing_manifest_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no such manifest"):
        read_manifest(tmp_path / "manifest.jsonl")
    with pytest.raises(ManifestError, match="is a directory"):
        read_manifest(tmp_path)
