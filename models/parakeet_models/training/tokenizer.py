"""The token inventory: one SentencePiece piece per word of the grammar, `<EOU>` and `<EOB>` last.

With so few words there is no reason to split them: one token per word gives the shortest sequences, hence the
easiest alignment. Ids: 0 = `<unk>`, then the words, then `<EOU>` (end of utterance) and `<EOB>` (end of a
backchannel, never trained here, kept so that the layout is that of the 120M model); the blank is no piece, its
id is the number of pieces.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from .grammar import words

EOU = "<EOU>"
EOB = "<EOB>"
WORD_START = "\u2581"


def train_tokenizer(path: Path) -> None:
    """Write the SentencePiece model of the grammar's words to `path`."""
    vocabulary = words()
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(vocabulary),
        model_writer=buffer,
        model_type="word",
        vocab_size=len(vocabulary) + 1,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",  # else the model file carries 240 kB of Unicode tables
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto.FromString(buffer.getvalue())  # type: ignore[attr-defined]
    # Appended rather than declared to the trainer, which would put them in front: the ids of the words must not
    # depend on the specials, and the 120M checkpoint has them last.
    for special in (EOU, EOB):
        piece = model.pieces.add()
        piece.piece, piece.score, piece.type = special, 0.0, piece.USER_DEFINED
    model.trainer_spec.vocab_size = len(model.pieces)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


class Tokenizer:
    """Words to ids and back."""

    def __init__(self, path: Path) -> None:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self._pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
        self._ids = {piece: i for i, piece in enumerate(self._pieces)}
        self.size = len(self._pieces)
        self.eou = self._ids[EOU]
        self.blank = self.size

    def encode(self, text: Sequence[str]) -> list[int]:
        """One id per word; a word outside the grammar is an error, not `<unk>`: it would train the wrong thing."""
        return [self._ids[WORD_START + word] for word in text]

    def decode(self, ids: Sequence[int]) -> str:
        """The words of `ids`, specials left out."""
        pieces = (self._pieces[i] for i in ids)
        return " ".join(piece[1:] for piece in pieces if piece.startswith(WORD_START))
