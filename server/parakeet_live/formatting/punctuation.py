"""Sentence case and a final mark by rules, as far as rules are right.

The words alone do not tell where a comma or a sentence inside an utterance goes; a formatter with a model of the
language can, and the entry point group is for those. What is done here: the first letter is large, the utterance ends
with a question mark where it begins like a question and otherwise with a full stop, and in English "i" and the names
of days and months that are nothing else are large. An utterance of nothing but numbers gets no mark: it is a number
to use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parakeet_live.formatting.formatter import Sentence
from parakeet_live.session.events import Word


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


I_FORMS = _set("i i'm i'll i've i'd")
NAMES = _set(
    """monday tuesday wednesday thursday friday saturday sunday
    january february april june july august september october november december"""
)
"""Without "march" and "may", which are verbs as well."""
AUXILIARIES = _set(
    """is are was were am do does did can could will would shall should may might must have has had
    isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't haven't hasn't"""
)
PRONOUNS = _set("i you he she it we they this that these those there anyone anybody someone somebody")
ASKING = _set("who whom whose what which where when why how")
ASKING_IS = _set("who's what's where's when's why's how's")
QUANTITIES = _set("many much long old often far about come")
MARKS = (".", "?", "!", "…", ":", ";", ",")


class Punctuation:
    """The formatter for one language. Only English has question words and names."""

    def __init__(self, language: str) -> None:
        self._english = language.replace("_", "-").split("-")[0].lower() == "en"

    def __call__(self, words: Sequence[Word], sentence: Sentence) -> Sequence[Word]:
        texts = [word.text for word in words]
        question = self._english and is_question(texts)
        if self._english:
            texts = [_large(text) if text in I_FORMS or _bare(text) in NAMES else text for text in texts]
        if sentence.begins:
            texts[0] = _large(texts[0])
        if sentence.ends and not texts[-1].endswith(MARKS) and not all(_is_number(text) for text in texts):
            texts[-1] += "?" if question and sentence.begins else "."
        return [replace(word, text=text) for word, text in zip(words, texts, strict=True)]


def is_question(texts: Sequence[str]) -> bool:
    """Whether lower-case English words begin like a question: "can you", "isn't it", "what is", "how many"."""
    first, second = texts[0], texts[1] if len(texts) > 1 else ""
    if first in ASKING:
        return not second or second in AUXILIARIES or (first == "how" and second in QUANTITIES)
    return first in ASKING_IS or (first in AUXILIARIES and second in PRONOUNS)


def _bare(text: str) -> str:
    return text.removesuffix("'s")


def _large(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_number(text: str) -> bool:
    return text[:1].isdecimal() and not any(character.isalpha() for character in text)
