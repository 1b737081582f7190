"""``python -m parakeet_models.export.coreml CHECKPOINT --out DIR``: Core ML packages of a checkpoint directory."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import get_args

from parakeet_models.bundle import Precision
from parakeet_models.export.bundle import token_ids
from parakeet_models.export.checkpoint import load_checkpoint
from parakeet_models.export.coreml.package import DEFAULT_STEPS, write_packages
from parakeet_models.export.coreml.report import operation_counts, package_bytes
from parakeet_models.packages import State


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m parakeet_models.export.coreml", description=__doc__)
    parser.add_argument(
        "checkpoint", type=Path, help="directory with network.safetensors, config.json, tokenizer.model"
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write the packages to")
    parser.add_argument("--precision", choices=get_args(Precision), default="fp16")
    parser.add_argument(
        "--state",
        choices=get_args(State),
        default="explicit",
        help="mlstate needs macOS 15 (default: %(default)s)",
    )
    parser.add_argument(
        "--step", type=int, action="append", help="encoder frames of 80 ms, repeatable (default: 2 and 16)"
    )
    parser.add_argument(
        "--multifunction",
        action=argparse.BooleanOptionalAction,
        help="one encoder package for all steps, for macOS 15 (default: with mlstate only)",
    )
    arguments = parser.parse_args()
    checkpoint = load_checkpoint(arguments.checkpoint)
    paths = write_packages(
        checkpoint.network,
        checkpoint.mel,
        token_ids(checkpoint.tokenizer, checkpoint.network.config.vocabulary),
        arguments.out,
        precision=arguments.precision,
        state=arguments.state,
        steps=arguments.step or DEFAULT_STEPS,
        multifunction=arguments.multifunction,
    )
    shutil.copyfile(checkpoint.tokenizer, arguments.out / "tokenizer.model")
    for path in paths:
        for function, counts in operation_counts(path).items():
            print(f"{path}: {package_bytes(path) / 1e6:.1f} MB, {function}: {counts.total()} operations")


if __name__ == "__main__":
    main()
