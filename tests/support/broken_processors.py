"""A Mac whose Neural Engine and GPU do not run the encoder, each in its own way."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_models.packages import ComputeUnits
from support.mil import InterpretedModel, runtime


class _NoNumbers(InterpretedModel):
    def predict(self, data: Any, state: Any = None) -> Any:
        return {name: np.full_like(array, np.nan) for name, array in super().predict(data, state).items()}


def open_interpreted(package: Path, function: str | None, units: ComputeUnits) -> InterpretedModel:
    if units is ComputeUnits.CPU_AND_NE:
        os.kill(os.getpid(), signal.SIGSEGV)
    if units is ComputeUnits.CPU_AND_GPU:
        return _NoNumbers(package, units, function)
    return runtime.open_interpreted(package, function, units)
