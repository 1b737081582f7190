"""What is said in training: kinds of text, each drawn with balanced coverage of its words.

The grammar is kept apart from the voices, so that one set of words decides the token inventory (`tokenizer.py`), what
the engines speak (`generate.py`) and what the streams join from single words (`streams.py`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from . import numbers
from .everyday import COMMON_WORDS
from .lexicon import GROUPS, LETTER_SOUNDS, domain_words, written
from .phrases import LISTS, TEMPLATES, draw_phrase

JOINABLE: dict[str, frozenset[str]] = {
    name: frozenset(written(text) for text in group) for name, group in GROUPS.items()
}
"""Group → the written texts that are spoken alone: utterances can be joined from clips of them."""

_GROUP_WEIGHTS: dict[str, float] = {
    "digit": 24.0, "number": 2.4, "calendar": 1.0, "time": 0.7, "money": 0.7, "letter": 5.0, "nato": 1.0,
    "symbol": 0.5, "answer": 1.3, "telephone": 0.8, "command": 0.7,
}  # fmt: skip
"""How often a text of a group is drawn relative to another group's text, when words are spoken alone: letters and
digits are short, easily confused and make up strings, so they need the most. 52 Kokoro speakers share
these clips, and a string joined from a speaker's digits is as varied as they are."""


def draw_number(rng: random.Random) -> str:
    """A number, date, time or sum of money."""
    draws = (
        numbers.draw_cardinal, numbers.draw_cardinal, numbers.draw_ordinal, numbers.draw_date, numbers.draw_date,
        numbers.draw_time, numbers.draw_time, numbers.draw_money, numbers.draw_year,
    )  # fmt: skip
    return rng.choice(draws)(rng)


def draw_string(rng: random.Random) -> str:
    """A digit string spoken in one go."""
    if rng.random() < 0.25:
        return numbers.draw_telephone(rng)
    count = numbers.draw_count(rng, ((2, 3.0), (3, 3.0), (4, 3.0), (5, 1.5), (6, 1.0), (7, 1.0)))
    return " ".join(numbers.draw_digits(rng, count))


def draw_salad(rng: random.Random) -> str:
    """Common words in no order: the acoustics of the language without its grammar, frequent words more often."""
    words = COMMON_WORDS
    return " ".join(words[int(len(words) * rng.random() ** 1.7)] for _ in range(rng.randrange(2, 8)))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "string": draw_string,
    "spelling": numbers.draw_spelling,
    "number": draw_number,
    "telephone": lambda rng: draw_phrase("telephone", rng),
    "command": lambda rng: draw_phrase("command", rng),
    "everyday": lambda rng: draw_phrase("everyday", rng),
    "salad": draw_salad,
}
"""Kind → draw a text. The kind `word` is drawn by `words_in_turn`."""


def words_in_turn(rng: random.Random) -> Iterator[str]:
    """Texts to be spoken alone, without end: every round says each text about as often as its group's weight."""
    while True:
        round_: list[str] = []
        for name, group in GROUPS.items():
            for text in group:
                weight = _GROUP_WEIGHTS[name] / 1.2
                round_ += [text] * (int(weight) + (rng.random() < weight % 1))
        round_ += rng.sample(COMMON_WORDS, 90)
        rng.shuffle(round_)
        for text in round_:
            yield f"{text}|{rng.choice(LETTER_SOUNDS[text])}" if text in LETTER_SOUNDS else text


_FUNCTION_WORDS = """
a an the i me my you your he she it we they them their our us this that these those is are was were be been am
do does did have has had will would can could should not in of for from with by as or if but so than then there
here what when where who which how why now just like want need get make take see know think come look give find
use work long much many more most some any all other about after before very well also only out over into too
i'm it's that's what's don't i'd i've moment one please
"""
FUNCTION_WORDS: tuple[str, ...] = tuple(_FUNCTION_WORDS.split())
"""Written as one token although they are not of the domain: phrases are full of them."""


def whole_words() -> list[str]:
    """Every word that is one token, sorted."""
    return sorted({*domain_words(), *FUNCTION_WORDS})


def vocabulary() -> frozenset[str]:
    """Every word the grammar can say apart from the salad: what the model is meant to know."""
    texts = [text for lines in (*TEMPLATES.values(), *LISTS.values()) for text in lines]
    plain = re.findall(r"[a-z']+", re.sub(r"\{\w+\}", " ", " ".join(texts)))
    return frozenset(whole_words()) | frozenset(plain)
