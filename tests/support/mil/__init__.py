"""Runs Core ML packages without Core ML: an interpreter of their MIL programs, in PyTorch.

It computes what the program says, operation by operation. It says nothing about speed, about the processor that Core
ML would choose, or about rounding inside Apple's kernels.
"""

from support.mil.model import InterpretedModel, InterpretedState
from support.mil.registry import UnknownOperationError

__all__ = ["InterpretedModel", "InterpretedState", "UnknownOperationError"]
