"""Numbers, dates, times, money and codes as people say them. Texts may carry `written|spoken` pairs (`lexicon.py`)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .lexicon import (
    DIGITS,
    LETTER_SOUNDS,
    LETTERS,
    MONTHS,
    NATO,
    ORDINALS,
    SCALES,
    TEENS,
    TENS,
    WEEKDAYS,
    ZED,
)


def cardinal(number: int, joiner: str = "") -> str:
    """`number` below 10**12 in words; `joiner` ("and") is said before the last two digits, as the British do."""
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return TEENS[number - 10]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2] + (f" {DIGITS[ones]}" if ones else "")
    power, name = next((10**p, n) for p, n in ((9, SCALES[3]), (6, SCALES[2]), (3, SCALES[1]), (2, SCALES[0])) if
                       number >= 10**p)  # fmt: skip
    count, rest = divmod(number, power)
    said = f"{cardinal(count, joiner)} {name}"
    if not rest:
        return said
    link = f" {joiner}" if joiner and rest < 100 else ""
    return f"{said}{link} {cardinal(rest, joiner)}"


def ordinal(number: int) -> str:
    """`number` as an ordinal: "twenty first"."""
    head, _, last = cardinal(number).rpartition(" ")
    return f"{head} {ORDINALS[last]}".strip()


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


def draw_count(rng: random.Random, weights: Sequence[tuple[int, float]]) -> int:
    """A number of words from `(count, weight)` pairs."""
    return rng.choices([count for count, _ in weights], [weight for _, weight in weights])[0]


def draw_letter(rng: random.Random) -> str:
    """A letter with one of its names; the British `zed` is written as it is said."""
    letter = rng.choice(LETTERS)
    name = rng.choice(LETTER_SOUNDS[letter]) if letter in LETTER_SOUNDS else letter
    return ZED if name == ZED else letter if name == letter else f"{letter}|{name}"


def draw_size(rng: random.Random) -> int:
    """A number as frequent in speech: mostly below a hundred, now and then in the millions."""
    top = rng.choices([10, 20, 100, 1000, 10_000, 10**6, 10**9], [2, 3, 8, 5, 3, 1.5, 0.5])[0]
    number = rng.randrange(top)
    return number - number % 100 if top > 1000 and rng.random() < 0.4 else number


def draw_cardinal(rng: random.Random) -> str:
    """A cardinal number, sometimes negative or with decimals."""
    said = cardinal(draw_size(rng), rng.choice(["", "and"]))
    share = rng.random()
    if share < 0.07:
        return f"minus {said}"
    if share < 0.2:
        return f"{said} point {' '.join(draw_digits(rng, rng.randrange(1, 4), 0.1))}"
    return said.replace("one hundred", "a hundred", 1) if share < 0.25 else said


def draw_ordinal(rng: random.Random) -> str:
    """An ordinal number."""
    return ordinal(rng.choice([rng.randrange(1, 32), rng.randrange(1, 100), 10 ** rng.randrange(2, 4)]))


def draw_year(rng: random.Random) -> str:
    """A year: "nineteen eighty four", "two thousand and seven", "twenty twenty six"."""
    year = rng.choice([rng.randrange(1900, 2000), rng.randrange(2000, 2040)])
    century, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return cardinal(year, rng.choice(["", "and"]))
    last = cardinal(rest) if rest > 9 else f"oh {cardinal(rest)}" if rest else "hundred"
    return f"{cardinal(century)} {last}"


def draw_date(rng: random.Random) -> str:
    """A date, with or without weekday and year."""
    month, day = rng.choice(MONTHS), ordinal(rng.randrange(1, 32))
    said = rng.choice(
        [f"{month} {day}", f"{month} the {day}", f"the {day} of {month}", f"{day} of {month}", month]
    )
    if rng.random() < 0.3:
        said = f"{rng.choice(WEEKDAYS)} {said}"
    return f"{said} {draw_year(rng)}" if rng.random() < 0.3 else said


def draw_time(rng: random.Random) -> str:
    """A time of day."""
    hour = cardinal(rng.randrange(1, 13))
    half = rng.choice(
        ["am|a_m", "pm|p_m", "in the morning", "in the afternoon", "in the evening", "at night"]
    )
    share = rng.random()
    if share < 0.25:
        said = rng.choice([f"half past {hour}", f"quarter past {hour}", f"quarter to {hour}", f"a quarter to {hour}",
                           f"ten past {hour}", f"five to {hour}", f"twenty to {hour}"])  # fmt: skip
    elif share < 0.45:
        said = f"{hour} o'clock"
    elif share < 0.85:
        minute = rng.randrange(60)
        said = f"{hour} {cardinal(minute) if minute > 9 else 'oh ' + cardinal(minute)}" if minute else hour
    else:
        return rng.choice(["noon", "midnight", f"{hour} {half}", f"{hour} {half}"])
    return f"{said} {half}" if rng.random() < 0.4 else said


def draw_money(rng: random.Random) -> str:
    """A sum of money."""
    whole, cents = draw_size(rng), rng.randrange(1, 100)
    unit, small = rng.choice([("dollar", "cent"), ("dollar", "cent"), ("pound", "p"), ("euro", "cent")])
    said = f"{cardinal(whole, rng.choice(['', 'and']))} {unit}{'s' * (whole != 1)}"
    share = rng.random()
    if share < 0.35:
        return f"{said} {rng.choice(['', 'and '])}{cardinal(cents)} {small}{'s' * (small == 'cent' and cents != 1)}"
    if share < 0.45:
        return f"{said} {cardinal(cents)}"
    if share < 0.55:
        return f"{cardinal(cents)} {rng.choice(['cents', 'pence', 'percent', 'percent'])}"
    return said


def draw_telephone(rng: random.Random) -> str:
    """A telephone, card or account number: digits in groups, with `double` and `hundred` now and then."""
    digits = draw_digits(rng, rng.choice([3, 4, 4, 5, 6, 7, 7, 8, 10, 10, 11, 12]), rng.choice([0.0, 0.5]))
    if rng.random() < 0.12:
        place = rng.randrange(len(digits))
        digits[place] = f"{rng.choice(['double', 'double', 'triple'])} {digits[place]}"
    if rng.random() < 0.06:
        digits.append("hundred")
    return " ".join(digits)


def draw_spelling(rng: random.Random) -> str:
    """Letters one by one, some of them named from the telephone alphabet, or a code of letters and digits."""
    share = rng.random()
    count = rng.randrange(2, 8)
    if share < 0.55:
        return " ".join(draw_letter(rng) for _ in range(count))
    if share < 0.7:
        return " ".join(rng.choice(NATO) for _ in range(count))
    if share < 0.8:
        names = [rng.choice(NATO) for _ in range(rng.randrange(1, 4))]
        return " ".join(f"{_letter_of(name)} {rng.choice(['as in', 'for', 'like'])} {name}" for name in names)
    parts = [draw_letter(rng) if rng.random() < 0.5 else rng.choice(DIGITS) for _ in range(count)]
    if rng.random() < 0.25:
        parts.insert(rng.randrange(1, count), rng.choice(["dash", "slash", "dot", "underscore"]))
    return " ".join(parts)


def _letter_of(name: str) -> str:
    letter = name[0]
    return f"{letter}|{LETTER_SOUNDS[letter][0]}" if letter in LETTER_SOUNDS else letter
