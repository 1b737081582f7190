"""Objects that run Core ML packages: coremltools' on a Mac, or whatever a test puts in their place.

Everything that runs packages asks for them here, and sees nothing but :class:`Model`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from parakeet_models.packages import ComputeUnits

RUNTIME_VARIABLE = "PARAKEET_COREML_RUNTIME"
"""Test hook: ``module:function`` of an :data:`OpenModel` that stands in for coremltools."""
COMPILED_CACHE = Path("~/Library/Caches/parakeet-live/compiled")
"""Compiled packages. The system keeps what it specialises for the Neural Engine by the path of the compiled model, so
a path that stays the same makes every start but the first fast."""

COMPILED_SUFFIX = ".mlmodelc"
UNUSED_DAYS = 60
"""Compiled models that were not loaded for so long are dropped when another one is made."""

Array = NDArray[Any]


class CoremlUnavailableError(Exception):
    """Nothing here can run Core ML packages; the message names the remedy."""


class Model(Protocol):
    """One function of one package. Never for two threads at the same time, and neither is a state."""

    def predict(self, data: dict[str, Array], state: Any = None) -> Mapping[str, Array]:
        """Run it once. ``data`` may be changed; outputs may be fp16 and have gaps between their rows."""
        ...

    def make_state(self) -> Any:
        """A new stream's ``MLState``, all zeros."""
        ...


OpenModel = Callable[[Path, str | None, ComputeUnits], Model]
"""Loads a package: its path, the name of the function (None: its only one), the processors it may use."""


def find_runtime(*, keep_compiled: bool = True) -> OpenModel:
    """What loads packages on this machine. ``keep_compiled``: the same packages will be loaded again.

    Raises:
        CoremlUnavailableError: this is no Mac, or coremltools is missing.
    """
    if hook := os.environ.get(RUNTIME_VARIABLE):
        module, _, function = hook.partition(":")
        try:
            opened: OpenModel = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise CoremlUnavailableError(f"{RUNTIME_VARIABLE}={hook}: {error}") from error
        return opened
    check_runtime()
    return open_with_coremltools if keep_compiled else open_once_with_coremltools


def check_runtime() -> None:
    """Say early, without loading anything, that :func:`find_runtime` will fail. Raises CoremlUnavailableError."""
    if os.environ.get(RUNTIME_VARIABLE):
        return
    if sys.platform != "darwin":
        raise CoremlUnavailableError(
            "Core ML models run on macOS only; use an ONNX model here: "
            "`parakeet-live models convert SOURCE --to onnx --out BUNDLE_DIR` makes one"
        )
    if find_spec("coremltools") is None:
        raise CoremlUnavailableError("Core ML models need coremltools: pip install 'parakeet-live[coreml]'")


def open_with_coremltools(package: Path, function: str | None, units: ComputeUnits) -> Model:
    """Load a compiled model, or a package by its compiled form, which is made when it is not in the cache yet."""
    import coremltools as ct

    compiled = package
    if package.suffix != COMPILED_SUFFIX:
        compiled = compiled_package(package, COMPILED_CACHE.expanduser(), ct.utils.compile_model)
    model: Model = ct.models.CompiledMLModel(str(compiled), ct.ComputeUnit[units.value], function)
    return model


def open_once_with_coremltools(package: Path, function: str | None, units: ComputeUnits) -> Model:
    """Load a package whose compiled form nobody will want again; it goes when the process ends."""
    import coremltools as ct

    model: Model = ct.models.MLModel(
        str(package), compute_units=ct.ComputeUnit[units.value], function_name=function
    )
    return model


def compiled_package(package: Path, cache: Path, compile_model: Callable[[str, str], str]) -> Path:
    """The compiled form of a package in ``cache``; earlier versions of it, and what was not used for UNUSED_DAYS, go.

    ``compile_model`` takes a package and a destination ``.mlmodelc``.
    """
    name = hashlib.sha256(os.fsencode(package.resolve())).hexdigest()[:16]
    version = _version(package)
    compiled = cache / f"{name}-{version}{COMPILED_SUFFIX}"
    if compiled.is_dir():
        os.utime(compiled)
        return compiled
    cache.mkdir(parents=True, exist_ok=True)
    unused = time.time() - UNUSED_DAYS * 86_400
    for other in cache.glob(f"*{COMPILED_SUFFIX}"):
        if other.name.startswith(f"{name}-") or other.stat().st_mtime < unused:
            shutil.rmtree(other, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = compile_model(str(package), str(Path(scratch) / f"compiled{COMPILED_SUFFIX}"))
        try:
            os.replace(made, compiled)
        except OSError:
            # Another process was faster, and what it made is the same.
            if not compiled.is_dir():
                raise
    return compiled


def _version(package: Path) -> str:
    """Changes with any file of the package, and with the system, whose compiler it is."""
    digest = hashlib.sha256(platform.mac_ver()[0].encode())
    for file in sorted(path for path in package.rglob("*") if path.is_file()):
        status = file.stat()
        digest.update(f"{file.relative_to(package)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


@contextmanager
def autorelease_pool() -> Iterator[None]:
    """Frees at its end what Core ML allocates inside; on other systems nothing.

    A thread without a pool of its own keeps the temporaries of every prediction until it ends.
    """
    runtime = _objective_c()
    if runtime is None:
        yield
        return
    token = runtime.objc_autoreleasePoolPush()
    try:
        yield
    finally:
        runtime.objc_autoreleasePoolPop(token)


@cache
def _objective_c() -> Any:
    """The two functions of the Objective-C runtime that ``@autoreleasepool`` is compiled to (Clang: ARC)."""
    if sys.platform != "darwin":
        return None
    library = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
    library.objc_autoreleasePoolPush.restype = ctypes.c_void_p
    library.objc_autoreleasePoolPop.argtypes = [ctypes.c_void_p]
    library.objc_autoreleasePoolPop.restype = None
    return library
