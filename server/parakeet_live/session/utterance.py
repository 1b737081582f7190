"""One utterance: tokens in, text and words out. Text only ever grows."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from parakeet_live.session.events import Word
from parakeet_live.session.vocabulary import Vocabulary

WORD_START = "▁"
UNKNOWN_MARK = "⁇"
"""Shown for the unknown piece: a hole in the text that the reader can see."""
BYTE_PIECE = re.compile(r"^<0x([0-9A-F]{2})>$")


@dataclass(slots=True)
class _Word:
    text: str
    first_frame: int
    last_frame: int
    log_probability: float
    tokens: int


class Utterance:
    """Grows by tokens. Frames are encoder frames of the whole stream (80 ms each)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._words: list[_Word] = []
        self._word_over = False
        # SentencePiece models with byte fallback spell rare characters as byte pieces; a character shows when
        # its last byte is here.
        self._bytes = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def empty(self) -> bool:
        """True while there is no text."""
        return not any(word.text for word in self._words)

    @property
    def text(self) -> str:
        """Words joined by single spaces."""
        return " ".join(word.text for word in self._words if word.text)

    def starts_word(self, token: int) -> bool:
        """True if an ordinary token, added next, would begin a word."""
        return self._word_over or self._vocabulary.pieces[token].startswith(WORD_START)

    def end_word(self) -> None:
        """What is added next begins a word, whatever its piece says."""
        self._word_over = True

    def add(self, token: int, frame: int, probability: float) -> None:
        """Append an ordinary token emitted on ``frame``."""
        text = self._piece_text(token)
        head, *starts = text.split(" ")
        if not self._words or (self._word_over and head):
            self._words.append(_Word("", frame, frame, 0.0, 0))
        self._word_over = self._word_over and not text
        self._words[-1].text += head
        for part in starts:
            self._words.append(_Word(part, frame, frame, 0.0, 0))
        word = self._words[-1]
        word.last_frame = frame
        word.log_probability += math.log(max(probability, 1e-10))
        word.tokens += 1

    def words(self, frame_ms: Callable[[int], int], last_frame: int) -> tuple[Word, ...]:
        """The words with times; ``frame_ms(k)`` is the audio time at which encoder frame k begins.

        A word runs from the frame of its first piece to the end of the frame of its last, clipped to the next
        word's start and to the end of ``last_frame``, the utterance's: emission lags the sound a little, and never
        by a constant, so times are approximate to a few frames of 80 ms.
        """
        shown = [word for word in self._words if word.text]
        starts = [frame_ms(word.first_frame) for word in shown]
        limits = [*starts[1:], frame_ms(last_frame + 1)]
        ends = [min(frame_ms(word.last_frame + 1), limit) for word, limit in zip(shown, limits, strict=False)]
        return tuple(
            Word(word.text, start, max(start, end), math.exp(word.log_probability / max(word.tokens, 1)))
            for word, start, end in zip(shown, starts, ends, strict=True)
        )

    def _piece_text(self, token: int) -> str:
        if token == self._vocabulary.unknown:
            return UNKNOWN_MARK
        piece = self._vocabulary.pieces[token]
        if match := BYTE_PIECE.match(piece):
            return self._bytes.decode(bytes([int(match[1], 16)]))
        return piece.replace(WORD_START, " ")
