"""From a ``.nemo`` archive or from random weights to a bundle; what ``parakeet-live models convert`` runs."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import sentencepiece

from parakeet_models.bundle import Bundle, Precision
from parakeet_models.export.bundle import write_bundle
from parakeet_models.export.from_bundle import network_of_bundle
from parakeet_models.export.parity import TestAudio
from parakeet_models.export.source import Source
from parakeet_models.mel import MelParameters
from parakeet_models.nemo import load_nemo
from parakeet_models.random_weights import (
    RANDOM_SIZES,
    EmissionRate,
    random_network,
    train_random_tokenizer,
)

NEMO_LICENCE = "NVIDIA Open Model License"
"""Of the published checkpoint."""


class ConvertError(Exception):
    """The conversion cannot be done as asked; the message names the reason and the remedy."""


def from_nemo(path: Path, *, name: str | None = None, licence: str | None = None) -> Source:
    """A trained network; its origin is the archive's name and sha256.

    Raises:
        NemoError: the archive is broken, unsafe, or holds another kind of network.
    """
    model = load_nemo(path)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Source(
        model.network,
        model.mel,
        model.tokenizer,
        name=name or path.stem,
        description="Converted from a NeMo checkpoint.",
        licence=licence or NEMO_LICENCE,
        origin=f"{path.name}, sha256 {digest}",
        weights_origin="trained",
    )


def from_bundle(bundle: Bundle, *, name: str | None = None, licence: str | None = None) -> Source:
    """The network of an ONNX bundle with fp32 or fp16 weights, read back from its graphs.

    Raises:
        UnfoldError: another kind of bundle.
    """
    manifest = bundle.manifest
    has_card = any(file.role == "model_card" for file in manifest.files)
    return Source(
        network_of_bundle(bundle),
        manifest.mel,
        bundle.path("tokenizer").read_bytes(),
        name=name or manifest.name,
        description=manifest.description,
        licence=licence or manifest.licence,
        origin=manifest.source,
        weights_origin=manifest.weights_origin,
        languages=manifest.languages,
        model_card=bundle.path("model_card").read_bytes() if has_card else None,
    )


def from_random_weights(
    size: str,
    tokens_per_second: float,
    *,
    seed: int = 0,
    audio: TestAudio | None = None,
    name: str | None = None,
    licence: str | None = None,
) -> Source:
    """A network of one of RANDOM_SIZES that nobody trained, calibrated on ``audio`` or on a speech-like sound.

    Raises:
        ConvertError: no such size.
    """
    if size not in RANDOM_SIZES:
        raise ConvertError(f"no size {size!r}; choose from {', '.join(RANDOM_SIZES)}")
    config = RANDOM_SIZES[size]
    mel = MelParameters(bins=config.mel_bins)
    tokenizer = train_random_tokenizer(config.vocabulary, seed)
    eou = sentencepiece.SentencePieceProcessor(model_proto=tokenizer).PieceToId("<EOU>")
    return Source(
        random_network(config, mel, eou, EmissionRate(tokens_per_second), seed, audio and audio.samples),
        mel,
        tokenizer,
        name=name or f"random-{size}",
        description=f"Random weights, seed {seed}: for benchmarks, its words are noise. "
        f"{tokens_per_second:g} tokens per second on {audio.name if audio else 'a speech-like sound'}.",
        licence=licence or "Apache-2.0",
        origin=f"random weights, seed {seed}",
        weights_origin="random",
    )


def check_output(out: Path) -> None:
    """Refuse to write over anything, before the work begins.

    Raises:
        ConvertError: ``out`` exists and is not an empty directory.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConvertError(f"{out} exists; choose another directory, or remove it first")


def convert(
    source: Source,
    out: Path,
    *,
    precision: Precision,
    audio: TestAudio | None = None,
    report: Callable[[str], None] = lambda step: None,
    write: Callable[..., Bundle] = write_bundle,
) -> Bundle:
    """Write ``source`` as a bundle. ``out`` appears only when the bundle is complete and checked.

    ``report`` is told the name of each step when it begins. ``write`` makes the bundle: :func:`write_bundle`, whose
    arguments these are, or ``export.coreml.bundle.write_package_bundle``.

    Raises:
        ConvertError: ``out`` exists, or cannot be written.
        ParityError: the bundle does not compute what the network computes.
    """
    check_output(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            unfinished = Path(scratch) / "bundle"
            bundle = write(source, unfinished, precision=precision, audio=audio, report=report)
            if out.is_dir():
                out.rmdir()
            shutil.move(unfinished, out)
    except OSError as error:
        raise ConvertError(f"cannot write {out}: {error.strerror or error}") from error
    return Bundle(out, bundle.manifest)
