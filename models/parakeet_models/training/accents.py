"""Foreign accents of English, made by exchanging phonemes before synthesis.

Real speakers whose first language is not English are what a model trained on clean voices fails on most.
A synthesiser that takes phonemes can imitate what such speakers do: they use the nearest sound of their own
language. The symbols are those of the Kokoro voices (IPA with capitals for the English diphthongs:
A = ey in "say", I = "my", O = "go", W = "now").
"""

from __future__ import annotations

import random

Rules = dict[str, tuple[str, ...]]

_VOWELS = "aeiouyøœɐɑɒɔəɚɛɜɪʊʌæAIOWYᵊᵻ"

ACCENTS: dict[str, Rules] = {
    "french": {
        "θ": ("s", "t", "f", "s"), "ð": ("z", "d"), "ɹ": ("ʁ", "ʁ", "w", "ɹ"), "ɪ": ("i",), "ʊ": ("u",),
        "æ": ("a",), "ə": ("œ", "ɛ", "ə"), "ᵊ": ("ə", "ɛ"), "ʌ": ("œ", "a", "ɔ"), "O": ("o", "ɔ"),
        "A": ("e", "ɛ", "ej"), "I": ("aj", "ɑj"), "h": ("",), "ʧ": ("ʃ",), "ʤ": ("ʒ",),
        "ɑ": ("ɔ", "a"), "ɛ": ("e", "ɛ"),
    },
    "spanish": {
        "θ": ("t", "s"), "ð": ("d",), "z": ("s",), "v": ("b", "β"), "ɹ": ("ɾ", "r"), "ɪ": ("i",),
        "ʊ": ("u",), "æ": ("a",), "ə": ("e", "a"), "ᵊ": ("e",), "ʌ": ("a",), "O": ("o",), "A": ("ej",),
        "I": ("aj",), "h": ("x", "h"), "ʃ": ("ʧ", "ʃ"), "ɑ": ("o", "a"), "ɔ": ("o",),
    },
    "italian": {
        "θ": ("t", "f"), "ð": ("d",), "ɹ": ("r", "ɾ"), "ɪ": ("i",), "ʊ": ("u",), "æ": ("ɛ", "a"),
        "ə": ("e", "a"), "ᵊ": ("e",), "ʌ": ("a",), "O": ("o",), "A": ("ej", "e"), "I": ("aj",), "h": ("",),
        "ɑ": ("ɔ",),
    },
    "german": {
        "θ": ("s", "t"), "ð": ("z", "d"), "w": ("v",), "ɹ": ("ʁ", "ɹ"), "æ": ("ɛ",), "ʌ": ("a",),
        "O": ("o",), "A": ("e", "ej"), "I": ("aj",), "ʤ": ("ʧ",), "ᵊ": ("ə",), "ɑ": ("ɔ",),
    },
    "indian": {
        "θ": ("tʰ", "t"), "ð": ("d",), "w": ("ʋ",), "v": ("ʋ",), "ɹ": ("ɾ", "ɻ", "r"), "t": ("ʈ",),
        "d": ("ɖ",), "ʌ": ("a", "ə"), "æ": ("ɛ", "æ"), "O": ("o",), "A": ("e",), "ɪ": ("i", "ɪ"), "z": ("z", "ʤ"),
    },
    "slavic": {
        "θ": ("s", "t", "f"), "ð": ("d", "z"), "w": ("v", "w"), "ɹ": ("r",), "ɪ": ("i",), "ʊ": ("u",),
        "æ": ("ɛ",), "ə": ("a", "ɛ"), "ᵊ": ("ɛ",), "ʌ": ("a",), "O": ("o",), "A": ("ej",), "I": ("aj",),
        "h": ("x",), "ɑ": ("o",),
    },
    "greek": {
        "ɹ": ("ɾ", "r"), "ɪ": ("i",), "ʊ": ("u",), "æ": ("a",), "ə": ("a", "e", "o"), "ᵊ": ("e",), "ʌ": ("a",),
        "O": ("o",), "A": ("ej",), "I": ("aj",), "h": ("x",), "ʃ": ("s",), "ʧ": ("ʦ",), "ʤ": ("ʣ",),
        "ɑ": ("o", "a"), "ɔ": ("o",),
    },
    "asian": {
        "θ": ("s",), "ð": ("z", "d"), "v": ("b", "f", "w"), "ɹ": ("ɾ", "l", "ɹ"), "ɪ": ("i",), "æ": ("ɛ", "a"),
        "ə": ("a", "ə"), "ʌ": ("a",), "O": ("o",), "A": ("e", "ej"), "z": ("z", "ʣ"),
    },
}  # fmt: skip
"""Accent → phoneme → the sounds that may take its place (a repeated one is more frequent)."""

ACCENT_WEIGHTS: dict[str, float] = {
    "french": 5.0, "spanish": 1.3, "italian": 1.0, "german": 1.2, "indian": 1.2, "slavic": 1.2, "greek": 2.5,
    "asian": 1.0,
}  # fmt: skip

FINAL_DEVOICING: dict[str, str] = {"v": "f", "z": "s", "d": "t", "ɡ": "k", "b": "p"}
"""At the end of a word, in speakers of German and of the Slavic languages, often in French ones too."""

PLAIN_STOPS: dict[str, str] = {"t": "d", "p": "b", "k": "ɡ"}
PLAIN_STOPS_ACCENTS = ("french", "spanish", "italian", "indian", "slavic", "greek")
"""Languages whose stops have no breath behind them. At the start of an English word that is a d, b or g: "two" sounds
like "do"."""


def draw_accent(rng: random.Random) -> str:
    """The name of one accent."""
    return rng.choices(list(ACCENT_WEIGHTS), list(ACCENT_WEIGHTS.values()))[0]


def apply_accent(phonemes: str, accent: str, rng: random.Random) -> str:
    """`phonemes` as a speaker with `accent` might say them.

    Every speaker does some of it: the share of sounds exchanged is drawn per call (45-100 %), and the same
    sound gets the same replacement throughout the call.
    """
    rules = ACCENTS[accent]
    strength = rng.uniform(0.45, 1.0)
    chosen = {symbol: rng.choice(options) for symbol, options in rules.items() if rng.random() < strength}
    devoice = rng.random() < {"german": 0.6, "slavic": 0.6, "french": 0.3, "spanish": 0.3}.get(accent, 0.1)
    paragoge = accent in ("italian", "asian") and rng.random() < 0.25
    end_stress = accent == "french" and rng.random() < 0.5
    plain_stops = accent in PLAIN_STOPS_ACCENTS and rng.random() < 0.5
    return " ".join(
        _accented_word(
            word,
            chosen,
            plain_stops=plain_stops,
            devoice=devoice,
            paragoge=paragoge,
            end_stress=end_stress,
        )
        for word in phonemes.split(" ")
    )


def _accented_word(
    word: str, chosen: dict[str, str], *, plain_stops: bool, devoice: bool, paragoge: bool, end_stress: bool
) -> str:
    body = word.rstrip(".,?!")
    tail = word[len(body) :]
    if plain_stops:
        body = _with_plain_stop(body)
    if devoice and body and body[-1] in FINAL_DEVOICING:
        body = body[:-1] + FINAL_DEVOICING[body[-1]]
    body = "".join(chosen.get(symbol, symbol) for symbol in body)
    if end_stress:
        body = _stress_last_vowel(body)
    if paragoge and body and body[-1] not in _VOWELS:
        body += "ə"
    return body + tail


def _with_plain_stop(word: str) -> str:
    start = len(word) - len(word.lstrip("ˈˌ"))
    first, following = word[start : start + 1], word[start + 1 :].lstrip("ˈˌ")[:1]
    if first not in PLAIN_STOPS or not following or following not in _VOWELS:
        return word
    return word[:start] + PLAIN_STOPS[first] + word[start + 1 :]


def _stress_last_vowel(word: str) -> str:
    bare = word.replace("ˈ", "").replace("ˌ", "")
    places = [i for i, symbol in enumerate(bare) if symbol in _VOWELS]
    return bare if not places else f"{bare[: places[-1]]}ˈ{bare[places[-1] :]}"
