"""`python -m parakeet_models.training.mean CHECKPOINT… --tokenizer FILE --out DIR`: one network of several checkpoints.

Checkpoints of one run, minutes or hours apart, lie in one valley of the loss; their mean is as good as the best of them
or better, on voices it has never heard above all, and costs nothing at run time (Wortsman et al., "Model soups", 2022).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .export import write_checkpoint
from .model import TrainingModel, tiny_config
from .tokenizer import Tokenizer


def mean_of(checkpoints: Sequence[Path], model: TrainingModel) -> dict[str, Any]:
    """Load the mean of the checkpoints' averaged weights into `model`; returns what the scores file says about them.

    Raises `RuntimeError` if a checkpoint is not one of such a model.
    """
    states = [torch.load(path, weights_only=True) for path in checkpoints]
    weights = [{**state["model"], **state["average"]} for state in states]
    mean = {
        name: torch.stack([each[name] for each in weights]).mean(0) if value.is_floating_point() else value
        for name, value in weights[-1].items()
    }
    model.load_state_dict(mean)
    return {
        "steps": states[-1]["step"],
        "minutes": round(states[-1]["elapsed_s"] / 60, 1),
        "mean_of_minutes": [round(state["elapsed_s"] / 60, 1) for state in states],
    }


def main() -> None:
    """Write the files that `parakeet_models.export` takes."""
    parser = argparse.ArgumentParser(
        prog="python -m parakeet_models.training.mean",
        description="Write the mean of several checkpoints of one run as a result of its own.",
    )
    parser.add_argument(
        "checkpoints", type=Path, nargs="+", metavar="CHECKPOINT", help="checkpoint.pt of a run"
    )
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.model of the run")
    parser.add_argument("--out", type=Path, required=True, help="folder for the result")
    arguments = parser.parse_args()
    tokenizer = Tokenizer(arguments.tokenizer)
    model = TrainingModel(tiny_config(tokenizer.size))
    scores = mean_of(arguments.checkpoints, model)
    write_checkpoint(arguments.out, model.plain_state(), model.network.config, arguments.tokenizer, scores)


if __name__ == "__main__":
    main()
