"""Spoken numbers as digits, by text2num, and digits that are spoken one by one as one string."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from text_to_num import find_numbers, text2num

from parakeet_live.formatting.formatter import Sentence
from parakeet_live.session.events import Word

PAUSE_MS = 1000
"""A pause longer than this separates "twenty" from "one". Digits spoken one by one are joined all the same."""
SPELT_BELOW = 10
"""A number below this that stands among other words stays a word: "give me one", "the third"."""
STRING_DIGITS = 3
"""From this many digits on, "oh" between them is a zero and "double five" are two fives."""
ZEROS = {"en": frozenset({"o", "oh"})}
"""Words that are a zero among digits and something else elsewhere."""
REPEATS = {"en": {"double": 2, "triple": 3}}
SCALES = {
    "en": frozenset(name + end for name in ("hundred", "thousand", "million", "billion") for end in ("", "s"))
}
"""A number that begins with one of these is a manner of speaking: "a hundred people", "thousands"."""


@dataclass(frozen=True, slots=True)
class _Token:
    """What text2num sees: a word, or one of several digits that a word stands for."""

    heard: str
    spoken: str
    """What it is taken for: "zero" for "oh" among digits."""
    first: int
    """Index of the first word it comes from."""
    after: int
    """One past the last."""
    pause_before_ms: int
    repeated: bool = False
    """It is one of the fives of "double five"."""
    is_word: bool = False
    """It is no number, whatever it looks like."""

    def text(self) -> str:
        return self.spoken

    def nt_separated(self, previous: _Token) -> bool:
        """Whether no number goes on from the token before: after a pause, and at the borders of "double five"."""
        border = (self.repeated or previous.repeated) and self.first != previous.first
        return border or self.pause_before_ms > PAUSE_MS

    def not_a_number_part(self) -> bool:
        return self.is_word


@dataclass(frozen=True, slots=True)
class _Number:
    """Tokens ``first`` to before ``after``, as digits."""

    first: int
    after: int
    text: str
    small: bool
    """Below SPELT_BELOW and not part of a string of digits."""


class Numerals:
    """The formatter for one language: one of those that text2num knows."""

    def __init__(self, language: str) -> None:
        """Raises ValueError for a language that is not known."""
        self._language = language.replace("_", "-").split("-")[0].lower()
        find_numbers([], self._language, 0.0)
        self._zeros = ZEROS.get(self._language, frozenset())
        self._repeats = REPEATS.get(self._language, {})
        self._scales = SCALES.get(self._language, frozenset())

    def __call__(self, words: Sequence[Word], sentence: Sentence) -> Sequence[Word]:
        tokens = list(self._tokens(words))
        numbers = self._numbers(tokens)
        if sum(number.after - number.first for number in numbers) < len(tokens):
            numbers = [number for number in numbers if not _stays_spelt(number, numbers)]
        result: list[Word] = []
        position = 0
        for number in numbers:
            first, after = tokens[number.first].first, tokens[number.after - 1].after
            result += words[position:first]
            result.append(_joined(words[first:after], number.text))
            position = after
        return [*result, *words[position:]]

    def _tokens(self, words: Sequence[Word]) -> Iterator[_Token]:
        position = 0
        while position < len(words):
            string = self._digit_string(words, position)
            if len(string) >= STRING_DIGITS and any(
                _is_digit(token.heard, self._language) for token in string
            ):
                yield from string
                position = string[-1].after
            else:
                heard = words[position].text.lower()
                pause = _pause(words, position)
                yield _Token(heard, heard, position, position + 1, pause, is_word=heard in self._zeros)
                position += 1

    def _digit_string(self, words: Sequence[Word], position: int) -> list[_Token]:
        """Digits spoken one by one from ``position`` on, "oh" and "double" understood."""
        string: list[_Token] = []
        while position < len(words):
            times = self._repeats.get(words[position].text.lower(), 1)
            at = position + (times > 1)
            heard = words[at].text.lower() if at < len(words) else ""
            if not (heard in self._zeros or _is_digit(heard, self._language)):
                break
            spoken = "zero" if heard in self._zeros else heard
            pause = _pause(words, position)
            string += [
                _Token(heard, spoken, position, at + 1, 0 if copy else pause, repeated=times > 1)
                for copy in range(times)
            ]
            position = at + 1
        return string

    def _numbers(self, tokens: Sequence[_Token]) -> list[_Number]:
        """Numbers in ascending order, neighbouring digits joined."""
        numbers: list[_Number] = []
        for found in find_numbers(tokens, self._language, 0.0):
            if tokens[found.start].spoken in self._scales:
                continue
            by_digits = len(found.text) == found.end - found.start and all(
                _is_digit(token.spoken, self._language) for token in tokens[found.start : found.end]
            )
            number = _Number(found.start, found.end, found.text, found.value < SPELT_BELOW)
            before = numbers[-1] if numbers else None
            if by_digits and before and before.after == number.first and self._by_digits(before, tokens):
                numbers[-1] = _Number(before.first, number.after, before.text + number.text, small=False)
            else:
                numbers.append(number)
        return numbers

    def _by_digits(self, number: _Number, tokens: Sequence[_Token]) -> bool:
        return len(number.text) == number.after - number.first and all(
            _is_digit(token.spoken, self._language) for token in tokens[number.first : number.after]
        )


def _stays_spelt(number: _Number, numbers: Sequence[_Number]) -> bool:
    """A small number with no other number beside it."""
    return number.small and not any(
        other.after == number.first or other.first == number.after for other in numbers
    )


def _pause(words: Sequence[Word], position: int) -> int:
    return words[position].start_ms - words[position - 1].end_ms if position else 0


def _joined(words: Sequence[Word], text: str) -> Word:
    confidence = math.prod(word.confidence for word in words) ** (1 / len(words))
    return Word(text, words[0].start_ms, words[-1].end_ms, confidence)


@lru_cache(maxsize=4096)
def _is_digit(word: str, language: str) -> bool:
    """Whether it is the name of a digit, and nothing else ("o" is a letter, too)."""
    try:
        return word not in ZEROS.get(language, ()) and 0 <= text2num(word, language) <= 9
    except ValueError:
        return False
