"""A SentencePiece model for networks that never learned a language: BPE over invented words."""

from __future__ import annotations

import io
import random

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

SPECIAL_PIECES = ("<EOU>", "<EOB>")
"""End of utterance and end of backchannel: the last two pieces, as in the 120M checkpoint."""

ONSETS = (
    "",
    *"bcdfghjklmnprstvwyz",
    "br",
    "ch",
    "cl",
    "dr",
    "fl",
    "gr",
    "pl",
    "pr",
    "qu",
    "sh",
    "st",
    "th",
    "tr",
)
VOWELS = (*"aeiou", "ai", "ea", "ee", "ie", "io", "oa", "oo", "ou")
CODAS = ("", "", "", *"dklmnprst", "ck", "ll", "nd", "ng", "nt", "rd", "ss", "st")
LEXICON_SIZE = 4_000
TEXT_WORDS = 40_000


def train_random_tokenizer(vocabulary: int, seed: int = 0) -> bytes:
    """A serialised model of ``vocabulary`` pieces: 0 is ``<unk>``, the last two are SPECIAL_PIECES."""
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_sentences(seed)),
        model_writer=buffer,
        model_type="bpe",
        vocab_size=vocabulary - len(SPECIAL_PIECES),
        character_coverage=1.0,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto.FromString(buffer.getvalue())
    # Appended, not declared to the trainer, which would put them in front: NeMo's script does the same.
    for special in SPECIAL_PIECES:
        piece = model.pieces.add()
        piece.piece, piece.score, piece.type = special, 0.0, piece.USER_DEFINED
    model.trainer_spec.vocab_size = len(model.pieces)
    return model.SerializeToString()


def _sentences(seed: int) -> list[str]:
    """Sentences of ten words; a few words are frequent and most are rare, as in any language."""
    rng = random.Random(seed)
    lexicon = ["".join(_syllables(rng)) for _ in range(LEXICON_SIZE)]
    frequencies = [1.0 / rank for rank in range(1, LEXICON_SIZE + 1)]
    words = rng.choices(lexicon, frequencies, k=TEXT_WORDS)
    return [" ".join(words[start : start + 10]) for start in range(0, TEXT_WORDS, 10)]


def _syllables(rng: random.Random) -> list[str]:
    count = rng.choices((1, 2, 3), (4, 4, 2))[0]
    return [rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(count)]
