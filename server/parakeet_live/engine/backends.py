"""Which backend runs a bundle: the one place that knows them all."""

from __future__ import annotations

from enum import StrEnum

from parakeet_live.engine.backend import Backend, EngineError
from parakeet_models.layouts import AnyBundle, ForeignBundle


class BackendChoice(StrEnum):
    """What runs the network; ``auto`` follows the bundle."""

    AUTO = "auto"
    ONNX = "onnx"


def open_backend(bundle: AnyBundle, slots: int, choice: BackendChoice = BackendChoice.AUTO) -> Backend:
    """Load the bundle's network with room for ``slots`` streams.

    Raises:
        EngineError: the bundle is not for this backend, or the backend does not run here.
    """
    runtime = bundle.layout.runtime if isinstance(bundle, ForeignBundle) else bundle.manifest.runtime
    if choice not in (BackendChoice.AUTO, runtime):
        raise EngineError(
            f"{bundle.manifest.name} is a bundle for {runtime}, which --backend {choice} cannot run; "
            f"convert the model with `parakeet-live models convert SOURCE --to {choice} --out BUNDLE_DIR`"
        )
    # Each runtime is loaded only where it is used.
    if isinstance(bundle, ForeignBundle):
        from parakeet_live.engine.nemo.backend import NemoBackend

        return NemoBackend(bundle, slots)
    from parakeet_live.engine.onnx import OnnxBackend

    return OnnxBackend(bundle, slots)
