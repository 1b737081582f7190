"""coremltools, imported quietly and with a remedy where it is missing."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

# On Linux it warns, once for each of its libraries, that models cannot be run there. We know.
logging.getLogger("coremltools").setLevel(logging.ERROR)

try:
    import coremltools as ct
    from coremltools.optimize import coreml as optimize
except ImportError as error:
    raise ImportError(
        "Core ML conversion needs coremltools: pip install 'parakeet-live[convert,coreml]' "
        "(wheels exist for macOS and for Linux on x86-64)"
    ) from error

__all__ = ["ct", "optimize", "quiet"]


@contextmanager
def quiet() -> Iterator[None]:
    """Without the compiler's hundred progress bars, and without the tracer's warnings.

    The tracer warns about every Python number that it sees in a shape; in our graphs all shapes are fixed on purpose.
    """
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
