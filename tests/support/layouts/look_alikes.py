"""Every published layout made of the embedded model's weights, each built when a test first asks for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from parakeet_models.bundle import embedded_bundle
from parakeet_models.export.from_bundle import network_of_bundle
from parakeet_models.export.nemo_layout import read_pieces
from parakeet_models.network import ParakeetNetwork
from support.layouts import onnx_files

ONNX = ("altunenes", "sherpa", "soniqo-onnx")
COREML = ("soniqo", "fluidinference", "fluidinference-fused")


class LookAlikes:
    """Directories by name; they are shared, so a test that changes one copies it first."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._makers: dict[str, Callable[[Path], Path]] = {
            "altunenes": lambda path: onnx_files.make_altunenes(self.network, self.pieces, path),
            "sherpa": lambda path: onnx_files.make_sherpa(self.network, self.pieces, path),
            "soniqo-onnx": lambda path: onnx_files.make_soniqo_onnx(self.network, self.pieces, path),
            "soniqo": self._soniqo,
            "fluidinference": self._fluidinference,
            "fluidinference-fused": self._fused,
        }

    @cached_property
    def network(self) -> ParakeetNetwork:
        """The embedded model."""
        return network_of_bundle(embedded_bundle())

    @cached_property
    def pieces(self) -> list[str]:
        """Its vocabulary."""
        return read_pieces(embedded_bundle().path("tokenizer").read_bytes())

    def directory(self, name: str) -> Path:
        """The look-alike of this name."""
        path = self._root / name
        return path if path.exists() else self._makers[name](path)

    # coremltools exists on two platforms only, so its makers are loaded where they are used.

    def _soniqo(self, path: Path) -> Path:
        from support.layouts.coreml_files import make_soniqo

        return make_soniqo(self.network, self.pieces, path)

    def _fluidinference(self, path: Path) -> Path:
        from support.layouts.coreml_files import make_fluidinference

        return make_fluidinference(self.network, self.pieces, path)

    def _fused(self, path: Path) -> Path:
        """Differs from the one with two graphs in the decoder alone."""
        from support.layouts.coreml_files import make_fused_decoder

        source = self.directory("fluidinference")
        for name in ("streaming_encoder.mlmodelc", "vocab.json"):
            part = source / name
            copy = shutil.copytree if part.is_dir() else shutil.copyfile
            path.mkdir(exist_ok=True)
            copy(part, path / name)
        make_fused_decoder(self.network, path)
        return path
