"""What a formatter is, and how the formatters of one stream are applied to its finals."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from parakeet_live.session.events import Final, Reason, Word

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sentence:
    """How an utterance lies in what is said."""

    begins: bool
    """False where it goes on from an utterance that was cut because it grew too long."""
    ends: bool
    """False where it was cut for that reason itself."""


class Formatter(Protocol):
    """Makes the words of a final more readable.

    Called on the event loop for each final that has words, so it must answer within a few milliseconds. Words may be
    joined, split or changed; the new ones take their times from the old. What it raises is logged, and the final
    then goes out with its raw text.
    """

    def __call__(self, words: Sequence[Word], sentence: Sentence) -> Sequence[Word]: ...


class FinalFormatter:
    """The formatters of one stream, in the order in which they are applied."""

    def __init__(self, formatters: Mapping[str, Formatter]) -> None:
        self._formatters = formatters
        self._goes_on = False
        """The final before was cut because it grew too long."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._formatters)

    def format(self, final: Final) -> Final:
        """``final`` with the formatted words and their text; unchanged where a formatter fails. Call it once for each
        final of the stream, in their order."""
        cut = final.reason is Reason.MAX_LENGTH
        sentence = Sentence(begins=not self._goes_on, ends=not cut)
        self._goes_on = cut
        words: Sequence[Word] = final.words
        for name, formatter in self._formatters.items() if words else ():
            try:
                words = formatter(words, sentence)
            except Exception as error:
                log.warning("the formatter %s failed, the raw text is used: %r", name, error)
                return final
        text = " ".join(word.text for word in words)
        return replace(final, text=text, words=tuple(words))
