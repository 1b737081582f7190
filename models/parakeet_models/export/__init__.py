"""Converters: from a checkpoint to what a backend runs. Needs the extra ``convert``."""

from parakeet_models.export.bundle import ParityError, write_bundle
from parakeet_models.export.convert import (
    ConvertError,
    check_output,
    convert,
    from_bundle,
    from_nemo,
    from_random_weights,
)
from parakeet_models.export.from_bundle import UnfoldError
from parakeet_models.export.parity import TestAudio
from parakeet_models.export.source import Source

__all__ = [
    "ConvertError",
    "ParityError",
    "Source",
    "TestAudio",
    "UnfoldError",
    "check_output",
    "convert",
    "from_bundle",
    "from_nemo",
    "from_random_weights",
    "write_bundle",
]
