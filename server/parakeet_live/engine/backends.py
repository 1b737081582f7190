"""Which backend runs a bundle: the one place that knows them all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum

from parakeet_live.engine.backend import Backend, EngineError
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_models.bundle import Runtime
from parakeet_models.layouts import AnyBundle, ForeignBundle

log = logging.getLogger(__name__)


class BackendChoice(StrEnum):
    """What runs the network; ``auto`` follows the bundle."""

    AUTO = "auto"
    ONNX = "onnx"
    COREML = "coreml"


def runtime_of(bundle: AnyBundle) -> Runtime:
    """What the graphs of a bundle are for."""
    return bundle.layout.runtime if isinstance(bundle, ForeignBundle) else bundle.manifest.runtime


def check_choice(bundle: AnyBundle, choice: BackendChoice) -> None:
    """Say early that :func:`open_backend` will refuse the bundle. Raises EngineError."""
    name, runtime = bundle.manifest.name, runtime_of(bundle)
    if choice not in (BackendChoice.AUTO, runtime):
        raise EngineError(
            f"{name} is a model for {runtime}, which the backend {choice} does not run: leave --backend out, or "
            f"convert the model with `parakeet-live models convert SOURCE --to {choice} --out BUNDLE_DIR`"
        )


def open_backend(
    bundle: AnyBundle,
    slots: int,
    choice: BackendChoice = BackendChoice.AUTO,
    coreml: CoremlOptions | None = None,
    report: Callable[[str], None] = log.info,
) -> Backend:
    """Load the bundle's network with room for ``slots`` streams; ``report`` is told what takes long.

    Raises:
        EngineError: the bundle is not for this backend, or the backend does not run here.
    """
    check_choice(bundle, choice)
    # Each runtime is loaded only where it is used.
    if runtime_of(bundle) == "coreml":
        from parakeet_live.engine.coreml.backend import CoremlBackend

        return CoremlBackend(bundle, slots, coreml or CoremlOptions(), report)
    if isinstance(bundle, ForeignBundle):
        from parakeet_live.engine.nemo.backend import NemoOnnxBackend

        return NemoOnnxBackend(bundle, slots)
    from parakeet_live.engine.onnx import OnnxBackend

    return OnnxBackend(bundle, slots)
