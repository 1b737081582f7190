"""The backend that the tests of the server run on: ONNX Runtime, or with PARAKEET_TEST_BACKEND=coreml the Core ML
backend, which interprets packages made of the same networks.
"""

from __future__ import annotations

import os
from pathlib import Path

from parakeet_live.engine.coreml.backend import CoremlBackend
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_live.engine.onnx import OnnxBackend
from parakeet_models.bundle import Bundle
from support.coreml_bundle import packaged, use_interpreter

COREML = os.environ.get("PARAKEET_TEST_BACKEND", "onnx") == "coreml"
if COREML:
    use_interpreter()


class _Coreml(CoremlBackend):
    """One worker process; ends when the object is forgotten."""

    def __init__(self, bundle: Bundle, slots: int) -> None:
        super().__init__(bundle, slots, CoremlOptions(), lambda line: None)


BackendUnderTest = _Coreml if COREML else OnnxBackend
"""To subclass where a test interferes with a backend."""


def for_tested_backend(bundle: Bundle, cache: Path, steps: tuple[int, ...] = (2, 4, 8, 16)) -> Bundle:
    """An ONNX bundle as the tested backend runs it; packages are kept in ``cache``."""
    return packaged(bundle, cache, steps) if COREML else bundle


def model_options(bundle: Bundle) -> tuple[str, ...]:
    """Options of a command that is to run the embedded model on the tested backend."""
    return ("--model", str(bundle.directory), "--backend", "coreml") if COREML else ()
