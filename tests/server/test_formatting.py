"""Readable text on finals: numbers as digits, sentence case, and what happens when a formatter fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parakeet_live.formatting import (
    FinalFormatter,
    Sentence,
    UnknownFormatterError,
    make_final_formatter,
    names,
    registry,
    split_names,
)
from parakeet_live.session.events import Final, Reason, Word


def final(text: str, pause_ms: int = 50, reason: Reason = Reason.EOU) -> Final:
    words = tuple(
        Word(word, index * (200 + pause_ms), index * (200 + pause_ms) + 200, 0.9)
        for index, word in enumerate(text.split())
    )
    return Final(0, text, words, 10_000, reason)


def formatted(text: str, *wanted: str, pause_ms: int = 50, language: str = "en") -> str:
    formatter = make_final_formatter(wanted, language)
    assert formatter is not None
    return formatter.format(final(text, pause_ms)).text


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("five zero five", "505"),
        ("five oh five", "505"),
        ("oh oh seven", "007"),
        ("zero zero seven", "007"),
        ("one one one one", "1111"),
        ("double five one two", "5512"),
        ("my number is oh seven double two one five please", "my number is 072215 please"),
        # Where a word is no number, it stays one.
        ("oh yes", "oh yes"),
        ("oh two please", "oh two please"),
        ("o canada", "o canada"),
        ("double five", "double five"),
        ("double trouble", "double trouble"),
        ("twenty double one oh", "20 110"),
        ("five double one hundred", "511 hundred"),
        ("no one knows this one", "no one knows this one"),
        ("a hundred people", "a hundred people"),
        ("thousands of people", "thousands of people"),
        # Small numbers among other words read better as words, an answer of nothing but a number as digits.
        ("give me two of them", "give me two of them"),
        ("the third", "the third"),
        ("three", "3"),
        ("zero", "0"),
        ("i have twenty five dogs", "i have 25 dogs"),
        ("the thirty first of may", "the 31st of may"),
        ("two hundred and five", "205"),
        ("one hundred and five six", "105 6"),
        ("twenty one two", "21 2"),
        ("one two hundred", "1 200"),
        ("three point one four", "3.14"),
        ("two three point one four", "2 3.14"),
        ("", ""),
        ("⁇ five ⁇", "⁇ five ⁇"),
    ],
)
def test_numerals(spoken: str, written: str) -> None:
    assert formatted(spoken, "numerals") == written


def test_a_pause_separates_numbers_but_not_the_digits_of_a_string() -> None:
    assert formatted("twenty one", "numerals", pause_ms=1_500) == "20 1"
    assert formatted("five zero five", "numerals", pause_ms=1_500) == "505"


def test_numerals_know_other_languages() -> None:
    assert formatted("fünf null fünf", "numerals", language="de") == "505"
    assert formatted("vingt et un chiens", "numerals", language="fr-CA") == "21 chiens"


def test_the_times_of_words_are_kept() -> None:
    formatter = make_final_formatter(["numerals", "punctuation"], "en")
    assert formatter is not None
    result = formatter.format(final("call five zero five now"))
    assert [(word.text, word.start_ms, word.end_ms) for word in result.words] == [
        ("Call", 0, 200),
        ("505", 250, 950),
        ("now.", 1_000, 1_200),
    ]
    assert [word.confidence for word in result.words] == pytest.approx([0.9] * 3)


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("yes", "Yes."),
        ("i think i'm right", "I think I'm right."),
        ("see you on monday or in april", "See you on Monday or in April."),
        ("it may march on", "It may march on."),
        ("what is your name", "What is your name?"),
        ("what's your name", "What's your name?"),
        ("how many people", "How many people?"),
        ("can you hear me", "Can you hear me?"),
        ("isn't it nice", "Isn't it nice?"),
        ("why", "Why?"),
        ("can do", "Can do."),
        ("do not do that", "Do not do that."),
        ("what a day", "What a day."),
        ("when you are ready press one", "When you are ready press one."),
        ("already done.", "Already done."),
        ("505", "505"),
        ("3.14", "3.14"),
        ("505 please", "505 please."),
        ("⁇", "⁇."),
        ("ärger", "Ärger."),
    ],
)
def test_punctuation(spoken: str, written: str) -> None:
    assert formatted(spoken, "punctuation") == written


def test_only_english_has_question_words() -> None:
    assert formatted("was is i", "punctuation", language="de") == "Was is i."


def test_numbers_come_before_punctuation_however_they_are_asked_for() -> None:
    assert formatted("is it twenty five", "punctuation", "numerals") == "Is it 25?"
    formatter = make_final_formatter(["punctuation", "numerals", "punctuation"], "en")
    assert formatter is not None
    assert formatter.names == ("numerals", "punctuation")


def test_an_utterance_that_was_cut_ends_and_goes_on_without_a_mark() -> None:
    formatter = make_final_formatter(["punctuation"], "en")
    assert formatter is not None
    texts = [
        formatter.format(final(text, reason=reason)).text
        for text, reason in (
            ("so i said", Reason.MAX_LENGTH),
            ("that it may", Reason.MAX_LENGTH),
            ("go on", Reason.EOU),
            ("and then", Reason.EOU),
        )
    ]
    assert texts == ["So I said", "that it may", "go on.", "And then."]


SOUNDS = "oh o zero one five twenty hundred point double yes first and"


@given(st.lists(st.sampled_from(SOUNDS.split()), max_size=12))
def test_numerals_lose_no_word_and_keep_the_order_of_time(spoken: list[str]) -> None:
    formatter = make_final_formatter(["numerals", "punctuation"], "en")
    assert formatter is not None
    raw = final(" ".join(spoken))
    words = formatter.format(raw).words
    assert all(first.end_ms <= second.start_ms for first, second in pairwise(words))
    if raw.words:
        assert (words[0].start_ms, words[-1].end_ms) == (raw.words[0].start_ms, raw.words[-1].end_ms)
        covered = sum(word.start_ms <= one.start_ms < word.end_ms for one in raw.words for word in words)
        assert covered == len(raw.words)


# Formatters of others


class Shouting:
    def __init__(self, language: str) -> None:
        if language != "en":
            raise ValueError(language)

    def __call__(self, words: Sequence[Word], sentence: Sentence) -> Sequence[Word]:
        return [Word(word.text.upper(), word.start_ms, word.end_ms, word.confidence) for word in words]


class Failing(Shouting):
    def __call__(self, words: Sequence[Word], sentence: Sentence) -> Sequence[Word]:
        raise RuntimeError("no idea")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package with these entry points were installed."""
    points = [
        EntryPoint("shouting", f"{__name__}:Shouting", registry.GROUP),
        EntryPoint("failing", f"{__name__}:Failing", registry.GROUP),
        EntryPoint("broken", f"{__name__}:Nothing", registry.GROUP),
        EntryPoint("numerals", f"{__name__}:Shouting", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    registry.installed.cache_clear()
    yield
    registry.installed.cache_clear()


@pytest.mark.usefixtures("installed")
def test_formatters_of_installed_packages_are_found() -> None:
    assert names() == ("numerals", "punctuation", "broken", "failing", "shouting")
    assert formatted("call five zero five", "shouting", "numerals") == "CALL 505"


@pytest.mark.usefixtures("installed")
def test_a_formatter_that_fails_gives_the_raw_text_and_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert formatted("call five zero five", "numerals", "failing") == "call five zero five"
    assert [record.getMessage() for record in caplog.records] == [
        "the formatter failing failed, the raw text is used: RuntimeError('no idea')"
    ]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("wanted", "language", "message"),
    [
        ("sparkle", "en", "'sparkle' is no formatter; there are: numerals, punctuation, broken"),
        ("numerals", "xx", "'numerals' does not know the language xx"),
        ("shouting", "de", "'shouting' does not know the language de"),
        ("broken", "en", "'broken' cannot be loaded"),
    ],
)
def test_what_cannot_be_had_is_explained(wanted: str, language: str, message: str) -> None:
    with pytest.raises(UnknownFormatterError, match=message):
        make_final_formatter([wanted], language)


def test_nothing_asked_for_is_no_formatter() -> None:
    assert make_final_formatter([], "xx") is None
    assert split_names(" numerals,,punctuation ") == ("numerals", "punctuation")
    assert split_names("") == ()
    assert FinalFormatter({}).format(final("five")).text == "five"
