"""Runs Core ML packages without Core ML: an interpreter of their MIL programs, in PyTorch.

It computes what the program says, operation by operation. It says nothing about speed, about the processor that Core
ML would choose, or about rounding inside Apple's kernels.
"""

import logging

# On Linux it warns, once for each of its libraries, that models cannot be run there.
logging.getLogger("coremltools").setLevel(logging.ERROR)

from support.mil.model import InterpretedModel, InterpretedState  # noqa: E402
from support.mil.registry import UnknownOperationError  # noqa: E402

__all__ = ["InterpretedModel", "InterpretedState", "UnknownOperationError"]
