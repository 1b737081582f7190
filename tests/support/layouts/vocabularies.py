"""The vocabulary files of the published exports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def write_vocab_json(directory: Path, pieces: Sequence[str]) -> None:
    """soniqo, FluidInference: id to piece."""
    content = {str(index): piece for index, piece in enumerate(pieces)}
    (directory / "vocab.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def write_tokenizer_json(directory: Path, pieces: Sequence[str]) -> None:
    """altunenes: Hugging Face's format, the special pieces as added tokens."""
    special = [piece for piece in pieces if piece in ("<EOU>", "<EOB>")]
    content = {
        "version": "1.0",
        "added_tokens": [{"id": pieces.index(piece), "content": piece, "special": True} for piece in special],
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "vocab": {piece: index for index, piece in enumerate(pieces) if piece not in special},
            "merges": [],
        },
    }
    (directory / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
