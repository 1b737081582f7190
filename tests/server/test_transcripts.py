"""Text, JSON, SRT and WebVTT from finals."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from parakeet_live.formatting import make_final_formatter
from parakeet_live.session.events import Final, Reason, Word
from parakeet_live.transcripts import cues, to_json, to_srt, to_text, to_vtt
from parakeet_live.transcripts.subtitles import CUE_LINES, CUE_MS, LINE_CHARACTERS, SHORTEST_CUE_MS


def final(text: str, start_ms: int = 0, word_ms: int = 300, utterance: int = 0) -> Final:
    words = tuple(
        Word(word, start_ms + index * word_ms, start_ms + (index + 1) * word_ms, 0.9)
        for index, word in enumerate(text.split())
    )
    end = words[-1].end_ms if words else start_ms
    return Final(utterance, text, words, end + 400, Reason.EOU)


TWO = [final("five zero", start_ms=1_200), final("yes", start_ms=3_600_000 + 61_005, utterance=1)]


def test_text_is_a_line_for_each_utterance_with_words() -> None:
    assert to_text([TWO[0], final(""), TWO[1]]) == "five zero\nyes\n"
    assert to_text([]) == ""


def test_json_is_one_line_that_holds_everything() -> None:
    line = to_json(TWO, source="call ä.wav", audio_ms=4_000_000)
    assert line.count("\n") == 1
    assert "ä" in line
    document = json.loads(line)
    assert document["text"] == "five zero yes"
    assert document["audio_ms"] == 4_000_000
    assert document["utterances"][0]["words"][1] == {
        "text": "zero",
        "start_ms": 1_500,
        "end_ms": 1_800,
        "confidence": 0.9,
    }
    assert document["utterances"][1]["reason"] == "eou"


def test_confidence_has_three_decimals_as_in_the_protocol() -> None:
    exact = final("zero")
    exact = replace(exact, words=tuple(replace(word, confidence=0.98765432) for word in exact.words))
    document = json.loads(to_json([exact], source="a.wav", audio_ms=1000))
    assert document["utterances"][0]["words"][0]["confidence"] == 0.988


def test_srt() -> None:
    assert to_srt(TWO) == (
        "1\n00:00:01,200 --> 00:00:01,800\nfive zero\n\n2\n01:01:01,005 --> 01:01:01,505\nyes\n"
    )
    assert to_srt([]) == ""


def test_vtt_has_its_header_and_escapes_markup() -> None:
    assert to_vtt([final("<b> &")]) == "WEBVTT\n\n00:00:00.000 --> 00:00:00.600\n&lt;b&gt; &amp;\n"
    assert to_vtt([]) == "WEBVTT\n"


def test_a_long_utterance_becomes_readable_cues() -> None:
    text = " ".join(["transcription"] * 40)
    parts = cues([final(text)])
    assert len(parts) > 1
    assert " ".join(line for cue in parts for line in cue.lines) == text
    for cue in parts:
        assert len(cue.lines) <= CUE_LINES
        assert all(len(line) <= LINE_CHARACTERS for line in cue.lines)
        assert cue.end_ms - cue.start_ms <= CUE_MS


def test_a_pause_inside_an_utterance_starts_a_new_cue() -> None:
    words = (Word("five", 0, 300, 1.0), Word("six", 2_000, 2_300, 1.0))
    parts = cues([Final(0, "five six", words, 3_000, Reason.EOU)])
    assert [cue.lines for cue in parts] == [("five",), ("six",)]


@given(
    st.lists(
        st.tuples(st.integers(0, 3_000), st.integers(1, 900), st.integers(1, 12)), min_size=1, max_size=60
    ),
    st.integers(1, 10),
)
def test_every_word_is_shown_while_it_is_said(words: list[tuple[int, int, int]], per_utterance: int) -> None:
    spoken: list[Word] = []
    time = 0
    for number, (pause, length, letters) in enumerate(words):
        spoken.append(Word(f"{number}{'x' * letters}", time + pause, time + pause + length, 1.0))
        time = spoken[-1].end_ms
    parts = [tuple(spoken[at : at + per_utterance]) for at in range(0, len(spoken), per_utterance)]
    shown = cues(
        Final(number, " ".join(word.text for word in part), part, part[-1].end_ms, Reason.EOU)
        for number, part in enumerate(parts)
    )
    for word in spoken:
        (cue,) = [cue for cue in shown if word.text in " ".join(cue.lines).split()]
        assert cue.start_ms <= word.start_ms < word.end_ms <= cue.end_ms
    for cue in shown:
        first, last = (" ".join(cue.lines).split()[at] for at in (0, -1))
        times = {word.text: word for word in spoken}
        assert cue.start_ms == times[first].start_ms
        assert times[last].end_ms <= cue.end_ms <= max(times[last].end_ms, cue.start_ms + SHORTEST_CUE_MS)


def test_subtitles_of_readable_text_keep_the_times_of_what_was_said() -> None:
    formatter = make_final_formatter(["numerals", "punctuation"], "en")
    assert formatter is not None
    said = final("call five zero five please", start_ms=1_000)
    assert to_srt([formatter.format(said)]) == "1\n00:00:01,000 --> 00:00:02,500\nCall 505 please.\n"


def test_json_has_readable_text_beside_the_raw_text() -> None:
    formatter = make_final_formatter(["numerals"], "en")
    assert formatter is not None
    finals = [TWO[0], final(""), TWO[1]]
    line = to_json(finals, source="a", audio_ms=1, formatted=[formatter.format(one) for one in finals])
    document = json.loads(line)
    assert (document["text"], document["formatted"]) == ("five zero yes", "50 yes")
    assert [one["formatted"] for one in document["utterances"]] == ["50", "yes"]
    assert document["utterances"][0]["words"][0]["text"] == "five"
    assert json.loads(to_json(finals, source="a", audio_ms=1))["formatted"] is None


@given(
    st.lists(
        st.tuples(st.integers(0, 3_000), st.integers(0, 400), st.text("abc-&<", min_size=1, max_size=60)),
        max_size=30,
    )
)
def test_cues_never_overlap_and_lose_no_word(pieces: list[tuple[int, int, str]]) -> None:
    words: list[Word] = []
    time = 0
    for pause, length, text in pieces:
        words.append(Word(text, time + pause, time + pause + length, 1.0))
        time = words[-1].end_ms
    parts = cues([Final(0, " ".join(word.text for word in words), tuple(words), time, Reason.END)])
    assert " ".join(line for cue in parts for line in cue.lines) == " ".join(word.text for word in words)
    assert all(cue.start_ms < cue.end_ms for cue in parts)
    assert all(first.end_ms <= second.start_ms for first, second in pairwise(parts))
