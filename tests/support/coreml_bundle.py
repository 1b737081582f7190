"""Core ML bundles for tests, and the interpreter as what runs them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import parakeet_models
from parakeet_models.bundle import MANIFEST_NAME, Bundle, load_bundle
from parakeet_models.coreml_runtime import RUNTIME_VARIABLE

INTERPRETER = "support.mil.runtime:open_interpreted"


def use_interpreter() -> None:
    """From now on this process and those that it starts run packages by interpreting them."""
    os.environ[RUNTIME_VARIABLE] = INTERPRETER
    tests = str(Path(__file__).parents[1])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if tests not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([tests, *filter(None, path)])


def packaged(bundle: Bundle, cache: Path, steps: tuple[int, ...] = (2, 16)) -> Bundle:
    """``bundle`` as Core ML packages in fp32, written by the real converter.

    They are kept in ``cache`` and made again when the bundle or the converter changes.
    """
    name = f"{bundle.manifest.name}-{'-'.join(map(str, steps))}"
    out = cache / f"{name}.{_fingerprint(bundle)}"
    if not out.exists():
        for old in cache.glob(f"{name}.*"):
            shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _convert(bundle, Path(scratch) / "packages", steps)
            os.replace(Path(scratch) / "packages", out)
    return load_bundle(out)


def _convert(bundle: Bundle, out: Path, steps: tuple[int, ...]) -> None:
    from parakeet_models.export import convert, from_bundle
    from parakeet_models.export.coreml.bundle import write_package_bundle

    def write(*arguments: object, **options: object) -> Bundle:
        return write_package_bundle(*arguments, steps=steps, **options)  # type: ignore[arg-type]

    convert(from_bundle(bundle), out, precision="fp32", write=write)


def _fingerprint(bundle: Bundle) -> str:
    digest = hashlib.sha256((bundle.directory / MANIFEST_NAME).read_bytes())
    source = Path(parakeet_models.__file__).parent
    for pattern in ("*.py", "export/**/*.py", "network/*.py"):
        for path in sorted(source.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
