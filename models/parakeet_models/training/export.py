"""Write a trained network as plain files: weights, sizes, tokenizer, scores."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from parakeet_models.network import NetworkConfig

from .features import MEL


def write_checkpoint(
    folder: Path,
    state: Mapping[str, Tensor],
    config: NetworkConfig,
    tokenizer: Path,
    scores: Mapping[str, Any],
) -> None:
    """`network.safetensors` (float32, `ParakeetNetwork` keys), `config.json`, `tokenizer.model`, `scores.json`.

    Each file is replaced in one step, the weights last: a reader never sees a torn file.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def replace(name: str, write: Any) -> None:
        unfinished = folder / f".{name}.part"
        write(unfinished)
        os.replace(unfinished, folder / name)

    described = {"network": asdict(config), "mel": MEL.model_dump()}
    replace("config.json", lambda path: path.write_text(json.dumps(described, indent=2) + "\n"))
    replace("tokenizer.model", lambda path: shutil.copyfile(tokenizer, path))
    replace("scores.json", lambda path: path.write_text(json.dumps(dict(scores), indent=2) + "\n"))
    weights = {name: value.float().contiguous() for name, value in state.items()}
    replace("network.safetensors", lambda path: save_file(weights, str(path)))
