"""Token ids and pieces of one model, as the session needs them."""

from __future__ import annotations

from dataclasses import dataclass

import sentencepiece

from parakeet_models.bundle import Bundle, BundleError
from parakeet_models.layouts import AnyBundle, ForeignBundle


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """``pieces[i]`` is the SentencePiece piece of token i (U+2581 marks the start of a word)."""

    pieces: tuple[str, ...]
    eou: int
    eob: int | None
    unknown: int | None

    @classmethod
    def load(cls, bundle: AnyBundle) -> Vocabulary:
        """The bundle's vocabulary. Raises BundleError if it does not fit the network."""
        pieces = bundle.layout.pieces if isinstance(bundle, ForeignBundle) else _read_tokenizer(bundle)
        tokens = bundle.manifest.tokens
        return cls(pieces, tokens.eou, tokens.eob, tokens.unknown)


def _read_tokenizer(bundle: Bundle) -> tuple[str, ...]:
    path = bundle.path("tokenizer")
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.Load(str(path))
    except (OSError, RuntimeError) as error:
        raise BundleError(f"{path}: not a SentencePiece model ({error}); copy the bundle again") from error
    size, wanted = processor.GetPieceSize(), bundle.manifest.geometry.vocabulary
    if size != wanted:
        raise BundleError(
            f"{path}: {size} pieces where the network has {wanted}; the tokenizer belongs to another model"
        )
    return tuple(processor.IdToPiece(i) for i in range(size))
