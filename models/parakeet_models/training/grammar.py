"""What the small model can hear: digits, digit strings and short answers.

The grammar is kept apart from the voices, so that one list of words decides the token inventory
(`tokenizer.py`), what the engines speak (`generate.py`) and what the streams say (`streams.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

DIGITS: tuple[str, ...] = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
"""The ten digits in order; `oh` is the second name of zero."""

SPOKEN_DIGITS: tuple[str, ...] = (*DIGITS, "oh")

ANSWERS: tuple[str, ...] = (
    "yes", "no", "yeah", "okay", "sure", "correct", "right", "wrong", "stop", "go", "help", "cancel", "next",
    "back", "repeat", "hello", "goodbye", "thanks", "thank you", "please", "wait", "again", "maybe",
    "operator", "yes please", "no thanks", "no thank you", "okay thank you", "that is correct",
    "that is right", "that is not right", "that is wrong", "not sure", "i am not sure", "i do not know",
    "one moment please", "start over", "go back", "repeat that please", "say that again please",
    "help me please", "yes that is right", "no that is wrong", "thank you goodbye",
)  # fmt: skip

FREQUENT_ANSWERS: tuple[str, ...] = ANSWERS[:24]
"""The one-word answers and `thank you`, drawn more often than the phrases."""


def words() -> list[str]:
    """Every word of the grammar, sorted: the token inventory is built from this."""
    return sorted({word for phrase in (*SPOKEN_DIGITS, *ANSWERS) for word in phrase.split()})


def draw_digits(
    rng: random.Random, count: int, oh_share: float = 0.2, repeat_share: float = 0.12
) -> list[str]:
    """`count` digit words; a zero is called `oh` in `oh_share` of the cases.

    `repeat_share` of the digits repeat the one before on purpose: a word said twice is what a transducer drops
    first, and numbers that people choose are full of them.
    """
    digits: list[str] = []
    for _ in range(count):
        digits.append(digits[-1] if digits and rng.random() < repeat_share else rng.choice(DIGITS))
    return ["oh" if digit == "zero" and rng.random() < oh_share else digit for digit in digits]


def draw_answer(rng: random.Random) -> str:
    """One short answer; single words make up two thirds."""
    return rng.choice(FREQUENT_ANSWERS if rng.random() < 0.67 else ANSWERS)


def draw_count(rng: random.Random, weights: Sequence[tuple[int, float]]) -> int:
    """A number of digits from `(count, weight)` pairs."""
    return rng.choices([count for count, _ in weights], [weight for _, weight in weights])[0]
