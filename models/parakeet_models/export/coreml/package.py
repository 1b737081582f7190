"""Writes a network's packages: the encoder for its step sizes, the prediction network and the joint."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parakeet_models.bundle import Geometry, Precision, TokenIds
from parakeet_models.coreml import PackageMetadata, function_name
from parakeet_models.export.coreml.convert import Target, convert_encoder, convert_joint, convert_prediction
from parakeet_models.export.coreml.toolkit import ct, quiet
from parakeet_models.mel import MelParameters
from parakeet_models.network import ParakeetNetwork
from parakeet_models.packages import ComputeUnits, State

DEFAULT_STEPS = (2, 16)
"""Encoder frames per step: 160 ms when live, 1.28 s to catch up and for recordings, with an eighth of the calls."""


def write_packages(
    network: ParakeetNetwork,
    mel: MelParameters,
    tokens: TokenIds,
    directory: Path,
    *,
    precision: Precision = "fp16",
    state: State = "explicit",
    steps: Sequence[int] = DEFAULT_STEPS,
    multifunction: bool | None = None,
) -> list[Path]:
    """Write the packages into ``directory`` and return their paths: encoders first, then prediction and joint.

    With ``multifunction`` the encoder is one package, ``encoder.mlpackage``, with a function ``step_N`` for each
    step size and the weights stored once; it needs macOS 15, as MLState does, and is the default there. Otherwise
    every step size has a package ``encoder_N.mlpackage`` of its own, for macOS 14.

    Eight-bit weights are for the encoder only: the other two parts are a twentieth of the size, and rounding errors
    of the LSTM would add up from token to token.

    Raises:
        ValueError: a step that the network cannot take, or MLState with fp32.
    """
    multifunction = state == "mlstate" if multifunction is None else multifunction
    network = network.eval()
    directory.mkdir(parents=True, exist_ok=True)
    geometry = Geometry(**asdict(network.config))
    small: Precision = "fp32" if precision == "fp32" else "fp16"
    # Compressed weights are other operations in the newer format, so the parts of a merger must be born in it.
    target: Target = "macOS15" if multifunction or state == "mlstate" else "macOS14"

    def metadata(**fields: Any) -> dict[str, str]:
        common = {"geometry": geometry, "mel": mel, "tokens": tokens}
        return PackageMetadata.model_validate(common | fields).to_user_defined()

    def encoder_metadata(functions: dict[str, int]) -> dict[str, str]:
        return metadata(
            part="encoder",
            precision=precision,
            compute_units=ComputeUnits.CPU_AND_NE,
            state=state,
            steps=functions,
        )

    paths = []
    with TemporaryDirectory() as scratch:
        apart = Path(scratch) if multifunction else directory
        for step in steps:
            path = apart / f"encoder_{step}.mlpackage"
            model = convert_encoder(network, step, precision, state, target)
            _save(model, path, encoder_metadata({"main": step}))
            paths.append(path)
        if multifunction:
            functions = {function_name(step): step for step in steps}
            merged = directory / "encoder.mlpackage"
            _merge(dict(zip(functions, paths, strict=True)), merged, encoder_metadata(functions))
            paths = [merged]
    for part, convert in (("prediction", convert_prediction), ("joint", convert_joint)):
        path = directory / f"{part}.mlpackage"
        # Core ML has no path for an LSTM on the Neural Engine, and for such small parts the way there costs more
        # than the work.
        _save(
            convert(network, small),
            path,
            metadata(part=part, precision=small, compute_units=ComputeUnits.CPU_ONLY),
        )
        paths.append(path)
    return paths


def _save(model: Any, path: Path, metadata: dict[str, str]) -> None:
    model.user_defined_metadata.update(metadata)
    if path.exists():
        shutil.rmtree(path)
    with quiet():
        model.save(str(path))


def _merge(functions: dict[str, Path], path: Path, metadata: dict[str, str]) -> None:
    """One package of several, by function name; the first is the default. Equal weights are stored once."""
    descriptor = ct.utils.MultiFunctionDescriptor()
    for name, source in functions.items():
        descriptor.add_function(str(source), "main", name)
    descriptor.default_function_name = next(iter(functions))
    with TemporaryDirectory() as scratch:
        merged = Path(scratch) / "merged.mlpackage"
        with quiet():
            ct.utils.save_multifunction(descriptor, str(merged))
        # Merging drops the metadata of its parts.
        _save(ct.models.MLModel(str(merged), skip_model_load=True), path, metadata)
