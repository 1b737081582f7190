"""Comparison of a NeMo configuration with its weights and with what this network can compute.

Recipes, cards and checkpoints of this model family disagree about biases, scaling and normalisation, so sizes come
from the tensors, the configuration must agree with them, and a difference is refused: a network that runs with one
wrong switch gives plausible nonsense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from torch import Tensor

from parakeet_models.nemo.errors import NemoError

RETRAIN = "this runtime computes only the network of Parakeet realtime EOU; convert a model of that kind"
INCONSISTENT = "configuration and weights are not from one model; save it again with NeMo's save_to"


def refuse(key: str, found: object, expected: object, remedy: str) -> NoReturn:
    """The shape of every refusal."""
    raise NemoError(f"{key}: found {found}, expected {expected}; {remedy}")


@dataclass(frozen=True, slots=True)
class Settings:
    """``model_config.yaml`` with dotted keys."""

    values: Mapping[str, Any]

    def get(self, key: str) -> Any:
        """The value at ``a.b.c``; None if absent, null, or an interpolation (``${...}``) that was not resolved."""
        value: Any = self.values
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return None if isinstance(value, str) and value.startswith("${") else value

    def need(self, key: str) -> Any:
        """A value that must be there."""
        value = self.get(key)
        if value is None:
            refuse(
                key,
                None,
                "a value",
                "the configuration is incomplete; save the model again with NeMo's save_to",
            )
        return value

    def number(self, key: str) -> float | None:
        """A number, also in the notations that YAML 1.1 takes for text (``1e-5``)."""
        value = self.get(key)
        if value is None:
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            refuse(key, value, "a number", "correct the configuration")

    def flag(self, key: str) -> bool | None:
        """True, False or absent."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            refuse(key, value, "true or false", "correct the configuration")
        return value

    def agree(self, key: str, tensors_say: object) -> None:
        """The value, if present, must be what the tensors say."""
        value = self.get(key)
        if value is not None and value != tensors_say:
            refuse(key, value, tensors_say, f"the weights say so: {INCONSISTENT}")

    def supports(self, key: str, *accepted: object, required: bool = False) -> None:
        """The value, if present, must be one that this runtime computes; ``accepted[0]`` is named in the error."""
        value = self.need(key) if required else self.get(key)
        if value is not None and value not in accepted:
            refuse(key, value, accepted[0], RETRAIN)


@dataclass(frozen=True, slots=True)
class Weights:
    """The state dict, asked for shapes."""

    tensors: Mapping[str, Tensor]

    def shape(self, key: str, dimensions: int) -> tuple[int, ...]:
        """Shape of a tensor that must be there with this many dimensions."""
        tensor = self.tensors.get(key)
        if tensor is None:
            refuse(key, "no such tensor", f"a tensor of {dimensions} dimensions", RETRAIN)
        if tensor.dim() != dimensions:
            refuse(key, f"shape {tuple(tensor.shape)}", f"{dimensions} dimensions", RETRAIN)
        return tuple(tensor.shape)

    def absent(self, key: str, meaning: str) -> None:
        """The presence of ``key`` would mean another architecture."""
        if key in self.tensors:
            refuse(key, "a tensor", f"none ({meaning})", RETRAIN)
