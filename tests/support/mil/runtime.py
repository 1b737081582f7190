"""The interpreter as a stand-in for coremltools: ``PARAKEET_COREML_RUNTIME=support.mil.runtime:open_interpreted``."""

from __future__ import annotations

from pathlib import Path

import torch

from parakeet_models.coreml_runtime import COMPILED_SUFFIX
from parakeet_models.packages import ComputeUnits
from support.mil.model import InterpretedModel

# The networks of the tests are small: a second thread gains nothing and waits by spinning.
torch.set_num_threads(1)

PACKAGE_INSIDE = "interpreted.mlpackage"
"""Where what stands for a compiled model keeps the package that would be compiled."""


def open_interpreted(package: Path, function: str | None, units: ComputeUnits) -> InterpretedModel:
    """Load a function, of what stands for a compiled model that of the package inside.

    Its outputs have the gaps that those of the Neural Engine have.
    """
    if package.suffix == COMPILED_SUFFIX:
        package = package / PACKAGE_INSIDE
    return InterpretedModel(package, units, function, strided=True)
