"""``python -m parakeet_models.export CHECKPOINT --out BUNDLE``: a checkpoint directory becomes a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from parakeet_models.bundle import Precision
from parakeet_models.export.bundle import write_bundle
from parakeet_models.export.checkpoint import load_checkpoint
from parakeet_models.export.source import Source


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m parakeet_models.export", description=__doc__)
    parser.add_argument(
        "checkpoint", type=Path, help="directory with network.safetensors, config.json, tokenizer.model"
    )
    parser.add_argument("--out", type=Path, required=True, help="bundle directory to write")
    parser.add_argument("--name", default="tiny-en", help="name of the bundle (default: %(default)s)")
    parser.add_argument("--description", default="")
    parser.add_argument(
        "--language", action="append", default=[], help="language tag, repeatable (default: en)"
    )
    parser.add_argument("--licence", required=True, help="SPDX expression or name")
    parser.add_argument("--source", required=True, help="where the weights come from")
    parser.add_argument("--model-card", type=Path, help="Markdown file to ship as MODEL_CARD.md")
    parser.add_argument("--precision", choices=get_args(Precision), default="fp16")
    arguments = parser.parse_args()
    checkpoint = load_checkpoint(arguments.checkpoint)
    source = Source(
        checkpoint.network,
        checkpoint.mel,
        checkpoint.tokenizer.read_bytes(),
        name=arguments.name,
        description=arguments.description,
        licence=arguments.licence,
        origin=arguments.source,
        languages=tuple(arguments.language) or ("en",),
        model_card=arguments.model_card.read_bytes() if arguments.model_card else None,
    )
    bundle = write_bundle(source, arguments.out, precision=arguments.precision)
    total = sum(file.bytes for file in bundle.manifest.files)
    assert bundle.manifest.parity is not None
    difference = bundle.manifest.parity.max_difference
    print(f"{bundle.directory}: {total / 1e6:.1f} MB, differs from PyTorch by at most {difference:.1e}")


if __name__ == "__main__":
    main()
