"""Brings a reference and a transcript to one spelling, so that only differences in *words* count as errors.

Lower case, no punctuation, digits as words, contractions written out, common spelling variants joined. For
digits and digit strings also the homophones a recogniser cannot hear apart ("for" and "four").
"""

from __future__ import annotations

import re

DIGIT_KINDS = frozenset({"digit", "digit-string"})
"""Kinds whose numbers are read digit by digit."""

_ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (10**2, "hundred"))
_LARGEST = 10**12
"""Longer numbers are account or telephone numbers, which people read digit by digit."""
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_DIGIT_HOMOPHONES = {
    "to": "two",
    "too": "two",
    "for": "four",
    "ate": "eight",
    "won": "one",
    "oh": "zero",
    "o": "zero",
}

# Applied in this order to lower-case text with straight apostrophes.
_SPELLINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bwon't\b", "will not"),
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\bshan't\b", "shall not"),
        (r"(?<!\bai)n't\b", " not"),
        (r"\bi'm\b", "i am"),
        (r"\blet's\b", "let us"),
        (r"\b(that|it|what|there|here|where|how|he|she|who)'s\b", r"\1 is"),
        (r"\b(\w+)'re\b", r"\1 are"),
        (r"\b(\w+)'ve\b", r"\1 have"),
        (r"\b(\w+)'ll\b", r"\1 will"),
        (r"\b(i|you|he|she|we|they)'d\b", r"\1 would"),
        (r"\bo'clock\b", "oclock"),
        (r"\bmr\b\.?", "mister"),
        (r"\bmrs\b\.?", "missus"),
        (r"\bdr\b\.?", "doctor"),
        (r"\ba\.m\b\.?", "am"),
        (r"\bp\.m\b\.?", "pm"),
        (r"\bvoice mail", "voicemail"),
        (r"\bvoice over\b|\bvoice-over\b", "voiceover"),
        (r"\bfile name", "filename"),
        (r"\bmail box", "mailbox"),
        (r"\bgood bye\b|\bgood-bye\b", "goodbye"),
        (r"\bre-record", "rerecord"),
        (r"\blog in\b|\blog-in\b", "login"),
        (r"\balpha\b", "alfa"),
        (r"\bjuliet\b", "juliett"),
        (r"\bx-ray\b|\bx ray\b", "xray"),
        (r"\bzed\b|\bzee\b", "z"),
        (r"\bokay\b", "ok"),
        (r"%", " percent "),
        (r"&", " and "),
        (r"\$\s*(\d[\d,]*)", r"\1 dollars"),
        (r"(?<=\d),(?=\d{3}\b)", ""),
    )
)


def normalise(text: str, kind: str = "") -> str:
    """``text`` in the one spelling used for comparison: lower-case words of a-z with single spaces.

    ``kind`` is the manifest's kind of the clip; it decides how numbers and homophones are read.
    """
    text = text.lower().replace("\u2019", "'")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    if kind in DIGIT_KINDS:
        text = re.sub(r"[0-9]", lambda match: f" {_ONES[int(match[0])]} ", text)
    text = re.sub(r"\b([0-9]+)(?:st|nd|rd|th)\b", lambda match: _ordinal(match[1]), text)
    text = re.sub(r"(?<=[0-9])\.(?=[0-9])", " point ", text)
    text = re.sub(r"[0-9]+", lambda match: f" {_cardinal(match[0])} ", text)
    words = re.sub(r"[^a-z ]", " ", text.replace("'", "")).split()
    if kind in DIGIT_KINDS:
        words = [_DIGIT_HOMOPHONES.get(word, word) for word in words]
    return " ".join(words)


def _cardinal(digits: str) -> str:
    number = int(digits)
    if number >= _LARGEST:
        return " ".join(_ONES[int(digit)] for digit in digits)
    return _words(number)


def _words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f" {_ONES[ones]}" if ones else "")
    scale, name = next(entry for entry in _SCALES if number >= entry[0])
    count, rest = divmod(number, scale)
    return f"{_words(count)} {name}" + (f" {_words(rest)}" if rest else "")


def _ordinal(digits: str) -> str:
    head, _, last = _cardinal(digits).rpartition(" ")
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return f"{head} {last}".strip()
