"""What a bundle is made of, whatever it came from and whatever it is going to run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from parakeet_models.bundle import (
    BundleFile,
    Geometry,
    Manifest,
    Precision,
    TokenIds,
    WeightsOrigin,
    describe_file,
)
from parakeet_models.mel import MelParameters
from parakeet_models.network import ParakeetNetwork


@dataclass(frozen=True, slots=True)
class Source:
    """A network, its companions, and what its bundle says about it."""

    network: ParakeetNetwork
    mel: MelParameters
    tokenizer: bytes
    """A SentencePiece model."""
    name: str
    description: str
    licence: str
    origin: str
    """Where the weights come from."""
    weights_origin: WeightsOrigin = "trained"
    languages: tuple[str, ...] = ("en",)
    model_card: bytes | None = None
    """Markdown."""

    def token_ids(self) -> TokenIds:
        """Special ids by their pieces ``<EOU>``, ``<EOB>`` and the tokenizer's own unknown id.

        Raises:
            ValueError: the tokenizer has no ``<EOU>`` piece or another size than the network.
        """
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.tokenizer)
        pieces, vocabulary = processor.GetPieceSize(), self.network.config.vocabulary
        if pieces != vocabulary:
            raise ValueError(
                f"the tokenizer of {self.name} has {pieces} pieces, the network has {vocabulary}"
            )
        ids = {processor.IdToPiece(i): i for i in range(vocabulary)}
        if "<EOU>" not in ids:
            raise ValueError(
                f"the tokenizer of {self.name} has no <EOU> piece; this model cannot end an utterance"
            )
        return TokenIds(eou=ids["<EOU>"], eob=ids.get("<EOB>"), blank=vocabulary, unknown=processor.unk_id())

    def write_companions(self, directory: Path) -> list[BundleFile]:
        """Write what is no graph into a bundle; returns the manifest's entries."""
        (directory / "tokenizer.model").write_bytes(self.tokenizer)
        files = [describe_file(directory, "tokenizer.model", "tokenizer")]
        if self.model_card is not None:
            (directory / "MODEL_CARD.md").write_bytes(self.model_card)
            files.append(describe_file(directory, "MODEL_CARD.md", "model_card"))
        return files

    def manifest(
        self, precision: Precision, step_sizes: tuple[int, ...], files: Sequence[BundleFile], **more: Any
    ) -> Manifest:
        """The manifest of a bundle of this source; ``more`` are the fields that depend on the runtime."""
        return Manifest(
            name=self.name,
            description=self.description,
            languages=self.languages,
            licence=self.licence,
            source=self.origin,
            weights=precision,
            weights_origin=self.weights_origin,
            geometry=Geometry(**asdict(self.network.config)),
            mel=self.mel,
            tokens=self.token_ids(),
            step_sizes=step_sizes,
            files=tuple(files),
            **more,
        )
