"""What a manifest says about the Core ML packages of a bundle."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

State = Literal["explicit", "mlstate"]
"""Where a stream's caches live: in inputs and outputs (macOS 14), or in an ``MLState`` (macOS 15)."""


class ComputeUnits(StrEnum):
    """Processors that Core ML may choose from; coremltools' names."""

    CPU_ONLY = "CPU_ONLY"
    CPU_AND_GPU = "CPU_AND_GPU"
    CPU_AND_NE = "CPU_AND_NE"
    ALL = "ALL"


PACKAGE_SUFFIX = ".mlpackage"


class EncoderFunction(BaseModel):
    """The encoder for steps of ``frames`` encoder frames: a package, and a function of it if it has several."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    frames: int = Field(gt=0)
    package: str
    function: str | None = None


class CoremlPackages(BaseModel):
    """Packages by part. A package is a folder beside the manifest, whose files the manifest lists."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: State
    macos: int = Field(ge=14)
    """Oldest major version of macOS that runs them."""
    encoder: tuple[EncoderFunction, ...] = Field(min_length=1)
    prediction: str
    joint: str

    def of_role(self, role: str) -> frozenset[str]:
        """Names of the packages with this role."""
        if role == "encoder":
            return frozenset(function.package for function in self.encoder)
        return frozenset({self.prediction if role == "prediction" else self.joint})
