"""The token inventory: whole words of the domain, then small pieces that can write any other word.

Ids: 0 = `<unk>` (never trained), whole words in order of the alphabet, word-start and inner pieces, `<EOU>` (end of
utterance) and `<EOB>` (end of a backchannel, never trained here, kept so that the layout is that of the 120M model).
The blank is no piece, its id is the number of pieces.

A letter that is spelled is a word of its own ("b" = one token). Words outside the inventory never start with such a
token but with a longer piece or with the bare word-start mark: the sound of a letter's name and the first sound of a
word have little to do with each other.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from .everyday import COMMON_WORDS
from .grammar import whole_words

EOU = "<EOU>"
EOB = "<EOB>"
SPECIALS = 2
"""Pieces after the last word piece: `<EOU>` and `<EOB>`."""
WORD_START = "\u2581"
CHARACTERS = "abcdefghijklmnopqrstuvwxyz'"
PIECES = 130
"""Pieces of two letters and more besides the characters."""


def _train(words: Sequence[str], **options: object) -> sentencepiece_model_pb2.ModelProto:  # type: ignore[name-defined]
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words),
        model_writer=buffer,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",  # else the model file carries 240 kB of Unicode tables
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return sentencepiece_model_pb2.ModelProto.FromString(buffer.getvalue())  # type: ignore[attr-defined]


def _frequent_pieces(words: Sequence[str]) -> list[str]:
    """`PIECES` byte pairs and longer that write the common words outside the inventory shortest."""
    known = set(words)
    rest = [word for word in COMMON_WORDS if word not in known]
    model = _train(rest, model_type="bpe", vocab_size=PIECES + 2 * len(CHARACTERS) + 40)
    found = [
        p.piece for p in model.pieces if len(p.piece.strip(WORD_START)) > 1 and not p.piece.startswith("<")
    ]
    return found[:PIECES]


def train_tokenizer(path: Path) -> None:
    """Write the SentencePiece model to `path`."""
    words = whole_words()
    model = _train(words, model_type="word", vocab_size=len(words) + 1)
    inner = sorted([WORD_START, *CHARACTERS, *_frequent_pieces(words)])
    score = min(piece.score for piece in model.pieces) - 1
    ordered = sorted((p for p in model.pieces if not p.piece.startswith("<")), key=lambda p: p.piece)
    plain = {p.piece for p in ordered}
    unknown = model.pieces[0]
    kept = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    kept.CopyFrom(model)
    del kept.pieces[:]
    kept.pieces.append(unknown)
    kept.pieces.extend(ordered)
    for name in (piece for piece in inner if piece not in plain):
        added = kept.pieces.add()
        added.piece, added.score = name, score
    # Appended rather than declared to the trainer, which would put them in front: the ids of the words must not
    # depend on the specials, and the 120M checkpoint has them last.
    for special in (EOU, EOB):
        piece = kept.pieces.add()
        piece.piece, piece.score, piece.type = special, 0.0, piece.USER_DEFINED
    kept.trainer_spec.vocab_size = len(kept.pieces)
    kept.trainer_spec.model_type = kept.trainer_spec.UNIGRAM
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(kept.SerializeToString())


class Tokenizer:
    """Words to ids and back."""

    def __init__(self, path: Path) -> None:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self._pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
        self._ids = {piece: i for i, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        self.eou = self._ids[EOU]
        self.blank = self.size
        self.word = cache(self._word)

    def _word(self, word: str) -> tuple[int, ...]:
        """The ids of one word: its own token, else the fewest pieces (the longest first where there is a choice)."""
        whole = self._ids.get(WORD_START + word)
        if whole is not None:
            return (whole,)
        text = WORD_START + word
        best: list[tuple[int, ...] | None] = [(), *([None] * len(text))]
        for end in range(1, len(text) + 1):
            for start in range(max(0, end - 8), end):
                before, piece = best[start], text[start:end]
                # A letter's own token is no beginning of a word.
                if before is None or piece not in self._ids or (start == 0 and len(piece) == 2):
                    continue
                if best[end] is None or len(before) + 1 < len(best[end] or ()):
                    best[end] = (*before, self._ids[piece])
        if best[-1] is None:
            raise KeyError(word)
        return best[-1]

    def encode(self, text: Sequence[str]) -> list[int]:
        """The ids of words; a character outside the inventory is an error, as `<unk>` would train the wrong thing."""
        return [i for word in text for i in self.word(word)]

    def decode(self, ids: Sequence[int]) -> str:
        """The words of `ids`, specials left out."""
        pieces = (self._pieces[i] for i in ids)
        return "".join(p for p in pieces if not p.startswith("<")).replace(WORD_START, " ").strip()
