"""The vocabulary files that published layouts come with: id to SentencePiece piece, in four formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from parakeet_models.bundle import TokenIds
from parakeet_models.layouts.errors import LayoutError

EOU, EOB, UNKNOWN = "<EOU>", "<EOB>", "<unk>"
PUBLISHED_CLASSES = 1027
"""Of Parakeet-EOU-120M: 1024 pieces, the two ends, the blank."""
BLANK = ("<blk>", "<blank>", "<pad>")


def read_pieces(directory: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Every piece in the order of the ids, without the blank, from the first of the files ``names`` that exists.

    Raises:
        LayoutError: none is there, or it does not number its pieces 0, 1, 2, …
    """
    path = next((directory / name for name in names if (directory / name).is_file()), None)
    if path is None:
        raise LayoutError(
            f"{directory}: no {' or '.join(names)}; without it token ids cannot become text: download it too"
        )
    try:
        by_id = READERS[path.name](path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LayoutError(f"{path}: not a vocabulary ({error!r}); download it again") from None
    count = len(by_id)
    if count == 0 or set(by_id) != set(range(count)):
        raise LayoutError(f"{path}: {count} pieces that are not numbered 0 to {count - 1}; download it again")
    pieces = tuple(by_id[index] for index in range(count))
    return pieces[:-1] if pieces[-1].lower() in BLANK else pieces


def with_ends(pieces: tuple[str, ...], classes: int | None) -> tuple[str, ...]:
    """``pieces`` with ``<EOU>`` and ``<EOB>``, if the file leaves out these two, which are the last before the blank.

    ``classes`` is the number of the joint's outputs; where the graph does not tell, the published network's is assumed.
    """
    if EOU not in pieces and (classes or PUBLISHED_CLASSES) == len(pieces) + 3:
        return (*pieces, EOU, EOB)
    return pieces


def token_ids(pieces: tuple[str, ...], source: Path) -> TokenIds:
    """Special ids by their pieces; the blank is one past the last piece.

    Raises:
        LayoutError: there is no ``<EOU>``.
    """
    ids = {piece: index for index, piece in enumerate(pieces)}
    if EOU not in ids:
        raise LayoutError(
            f"{source}: the vocabulary has no {EOU}, so this model cannot end an utterance; "
            "use a Parakeet model with end of utterance (parakeet_realtime_eou)"
        )
    return TokenIds(eou=ids[EOU], eob=ids.get(EOB), blank=len(pieces), unknown=ids.get(UNKNOWN))


def _of_vocab_json(text: str) -> Mapping[int, str]:
    """``{"0": "<unk>", …}``, the other way round, or a list."""
    content: Any = json.loads(text)
    if isinstance(content, list):
        return dict(enumerate(map(str, content)))
    if all(isinstance(value, str) for value in content.values()):
        return {int(key): value for key, value in content.items()}
    return {int(value): key for key, value in content.items()}


def _of_tokens_txt(text: str) -> Mapping[int, str]:
    """A piece and its id on every line."""
    pairs = (line.rstrip().rsplit(maxsplit=1) for line in text.splitlines() if line.strip())
    return {int(index): piece for piece, index in pairs}


def _of_tokenizer_json(text: str) -> Mapping[int, str]:
    """Hugging Face's ``tokenizers``: a dictionary (BPE) or a list with scores (Unigram), and added tokens."""
    content: Any = json.loads(text)
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):
        pieces = {index: str(piece) for index, (piece, *_) in enumerate(vocabulary)}
    else:
        pieces = {int(index): str(piece) for piece, index in vocabulary.items()}
    return pieces | {int(token["id"]): str(token["content"]) for token in content.get("added_tokens", ())}


READERS: dict[str, Callable[[str], Mapping[int, str]]] = {
    "vocab.json": _of_vocab_json,
    "tokens.txt": _of_tokens_txt,
    "tokenizer.json": _of_tokenizer_json,
}
