"""Core ML bundles for tests, and the interpreter as what runs them."""

from __future__ import annotations

import os
from pathlib import Path

from parakeet_models.bundle import Bundle, load_bundle
from parakeet_models.coreml_runtime import RUNTIME_VARIABLE

INTERPRETER = "support.mil.runtime:open_interpreted"


def use_interpreter() -> None:
    """From now on this process and those that it starts run packages by interpreting them."""
    os.environ[RUNTIME_VARIABLE] = INTERPRETER
    tests = str(Path(__file__).parents[1])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if tests not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([tests, *filter(None, path)])


def packaged(bundle: Bundle, out: Path, steps: tuple[int, ...] = (2, 16)) -> Bundle:
    """``bundle`` as Core ML packages in fp32, written by the real converter; made once for each ``out``."""
    if not out.exists():
        from parakeet_models.export import convert, from_bundle
        from parakeet_models.export.coreml.bundle import write_package_bundle

        def write(*arguments: object, **options: object) -> Bundle:
            return write_package_bundle(*arguments, steps=steps, **options)  # type: ignore[arg-type]

        convert(from_bundle(bundle), out, precision="fp32", write=write)
    return load_bundle(out)
