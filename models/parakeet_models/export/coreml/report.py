"""What a package holds: for every function, how many operations of each kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from parakeet_models.export.coreml.toolkit import ct


def operation_counts(path: Path) -> dict[str, Counter[str]]:
    """By function name; constants are left out, for they are not computed."""
    program = ct.utils.load_spec(str(path)).mlProgram
    return {
        name: Counter(
            operation.type
            for block in function.block_specializations.values()
            for operation in block.operations
            if operation.type != "const"
        )
        for name, function in program.functions.items()
    }
