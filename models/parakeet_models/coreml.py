"""Our Core ML packages as a backend sees them: names, shapes, and the metadata that makes a package self-describing.

Free of torch and coremltools, so that whatever runs or inspects packages can import it. ``export.coreml`` writes
them; docs/coreml.md describes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parakeet_models.bundle import Geometry, Precision, TokenIds
from parakeet_models.mel import MelParameters
from parakeet_models.packages import ComputeUnits, State

FORMAT_VERSION = 1
METADATA_KEY = "parakeet-live"
"""Key in a package's user-defined metadata; its value is :class:`PackageMetadata` as JSON."""

Part = Literal["encoder", "prediction", "joint"]
CACHES = ("stage1", "stage2", "keys", "values", "conv")
"""What a stream carries from step to step. With explicit state: inputs of these names, outputs with ``new_`` before."""


class Sizes(Protocol):
    """What :func:`cache_shapes` reads; ``bundle.Geometry`` and ``network.NetworkConfig`` both have it."""

    @property
    def layers(self) -> int: ...
    @property
    def d_model(self) -> int: ...
    @property
    def attention_left(self) -> int: ...
    @property
    def conv_kernel(self) -> int: ...
    @property
    def subsampling_channels(self) -> int: ...
    @property
    def stage_widths(self) -> tuple[int, ...]: ...


def cache_shapes(sizes: Sizes) -> dict[str, tuple[int, int, int, int]]:
    """Shapes of CACHES for one stream; they do not depend on the step size. All zeros at the start of a stream.

    Frames lie in order of time, the newest last: ``keys`` [layers, left, 1, d_model], ``values``
    [layers, d_model, 1, left], ``conv`` [layers, d_model, 1, kernel - 1]. ``stage1`` and ``stage2`` hold the last
    frame of the first two subsampling stages.
    """
    layers, d_model, left = sizes.layers, sizes.d_model, sizes.attention_left
    width1, width2 = sizes.stage_widths[:2]
    return {
        "stage1": (1, sizes.subsampling_channels, 1, width1),
        "stage2": (1, sizes.subsampling_channels, 1, width2),
        "keys": (layers, left, 1, d_model),
        "values": (layers, d_model, 1, left),
        "conv": (layers, d_model, 1, sizes.conv_kernel - 1),
    }


def function_name(step: int) -> str:
    """Name of the function for steps of ``step`` encoder frames in a multifunction package."""
    return f"step_{step}"


class PackageError(Exception):
    """A package is not one of ours, or not one that this version reads."""


class PackageMetadata(BaseModel):
    """What a package says about itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    part: Part
    precision: Precision
    compute_units: ComputeUnits
    """Where this part is meant to run."""
    state: State = "explicit"
    steps: dict[str, int] = Field(default_factory=dict)
    """Encoder only: function name to encoder frames per step. A package of one function calls it ``main``."""
    geometry: Geometry
    mel: MelParameters
    tokens: TokenIds

    def to_user_defined(self) -> dict[str, str]:
        """As Core ML stores it: text by key."""
        return {METADATA_KEY: self.model_dump_json()}

    @classmethod
    def from_user_defined(cls, metadata: Mapping[str, str]) -> Self:
        """Read a package's user-defined metadata.

        Raises:
            PackageError: it is absent or of another format.
        """
        try:
            text = metadata[METADATA_KEY]
        except KeyError:
            raise PackageError(
                f"no {METADATA_KEY!r} in the metadata: not a package of parakeet-live"
            ) from None
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise PackageError(
                f"metadata is not of format {FORMAT_VERSION} ({problems}); convert the model again"
            ) from None
