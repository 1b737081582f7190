"""Write a bundle of Core ML packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from parakeet_models.bundle import (
    Bundle,
    BundleFile,
    Parity,
    Precision,
    describe_package,
    load_bundle,
    write_manifest,
)
from parakeet_models.coreml import function_name
from parakeet_models.coreml_runtime import OpenModel
from parakeet_models.export.bundle import ParityError
from parakeet_models.export.convert import ConvertError
from parakeet_models.export.coreml.package import DEFAULT_STEPS, write_packages
from parakeet_models.export.coreml.parity import measure_package_parity
from parakeet_models.export.parity import TestAudio
from parakeet_models.export.source import Source
from parakeet_models.packages import CoremlPackages, EncoderFunction, State
from parakeet_models.random_weights.signal import speech_like

PACKAGE_TOLERANCE = 0.1
"""Largest relative difference of the encoded frames: above what eight bits cost, far below what a fault does."""


def write_package_bundle(
    source: Source,
    directory: Path,
    *,
    precision: Precision = "fp16",
    audio: TestAudio | None = None,
    report: Callable[[str], None] = lambda step: None,
    state: State = "explicit",
    steps: Sequence[int] = DEFAULT_STEPS,
    multifunction: bool | None = None,
    open_model: OpenModel | None = None,
) -> Bundle:
    """Convert ``source`` into ``directory`` and return the verified bundle.

    ``state``, ``steps`` and ``multifunction`` as in :func:`write_packages`; other arguments as in ``write_bundle``.
    ``open_model`` is what can run packages here: with it the bundle is compared with PyTorch, and its manifest holds
    the figures.

    Raises:
        ParityError: the packages do not compute what the network computes.
        ConvertError: an impossible step, or MLState with fp32.
        ValueError: the tokenizer does not fit.
    """
    tokens, network = source.token_ids(), source.network
    steps = tuple(sorted(set(steps)))
    multifunction = state == "mlstate" if multifunction is None else multifunction
    report(f"converting the encoder for steps of {', '.join(map(str, steps))} frames ({precision})")
    try:
        write_packages(
            network,
            source.mel,
            tokens,
            directory,
            precision=precision,
            state=state,
            steps=steps,
            multifunction=multifunction,
        )
    except ValueError as error:
        raise ConvertError(str(error)) from error
    packages = CoremlPackages(
        state=state,
        macos=15 if multifunction or state == "mlstate" else 14,
        encoder=tuple(
            EncoderFunction(
                frames=step,
                package="encoder.mlpackage" if multifunction else f"encoder_{step}.mlpackage",
                function=function_name(step) if multifunction else None,
            )
            for step in steps
        ),
        prediction="prediction.mlpackage",
        joint="joint.mlpackage",
    )
    files: list[BundleFile] = []
    for role in ("encoder", "prediction", "joint"):
        for package in sorted(packages.of_role(role)):
            files += describe_package(directory, package, role)
    files += source.write_companions(directory)
    manifest = source.manifest(precision, steps, files, runtime="coreml", coreml=packages)
    if open_model is not None:
        report("comparing with PyTorch")
        audio = audio or TestAudio("speech-like sound", speech_like(10.0, seed=0))
        parity = measure_package_parity(network, Bundle(directory, manifest), audio, open_model)
        _check_parity(parity, precision)
        manifest = manifest.model_copy(update={"parity": parity})
    write_manifest(directory, manifest)
    return load_bundle(directory)


def _check_parity(parity: Parity, precision: Precision) -> None:
    if not parity.relative_difference <= PACKAGE_TOLERANCE:
        raise ParityError(
            f"the {precision} packages differ from PyTorch by {parity.relative_difference:.1e} of the signal, "
            f"allowed {PACKAGE_TOLERANCE:.0e}"
        )
