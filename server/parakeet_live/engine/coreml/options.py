"""What can be chosen about the Core ML backend."""

from __future__ import annotations

from dataclasses import dataclass

from parakeet_models.packages import ComputeUnits

FALLBACKS: dict[ComputeUnits, tuple[ComputeUnits, ...]] = {
    ComputeUnits.ALL: (ComputeUnits.CPU_AND_GPU, ComputeUnits.CPU_ONLY),
    ComputeUnits.CPU_AND_NE: (ComputeUnits.CPU_AND_GPU, ComputeUnits.CPU_ONLY),
    ComputeUnits.CPU_AND_GPU: (ComputeUnits.CPU_ONLY,),
    ComputeUnits.CPU_ONLY: (),
}
"""What to try when the encoder does not run on the processors it is meant for."""
ENCODER_UNITS = ComputeUnits.CPU_AND_NE


@dataclass(frozen=True, slots=True)
class CoremlOptions:
    """Docs/coreml.md gives the reasons of the defaults.

    ``replicas``: worker processes, each with the whole model. ``encoder``: None is the Neural Engine, or what
    FALLBACKS says where the model does not run there.
    """

    replicas: int = 1
    encoder: ComputeUnits | None = None
    prediction: ComputeUnits = ComputeUnits.CPU_ONLY
    joint: ComputeUnits = ComputeUnits.CPU_ONLY
