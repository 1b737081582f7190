"""Python, the libraries that run networks, and what is optional."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from parakeet_live.doctor.findings import Finding, Level
from parakeet_live.engine.cores import usable_cores
from parakeet_models.hub import Runtime


def check_software(native: Runtime) -> list[Finding]:
    """Versions of everything that matters for what runs here."""
    return [
        Finding("parakeet-live", f"{version('parakeet-live')}, Python {platform.python_version()}"),
        Finding("cores", f"{usable_cores()} usable by this process"),
        _onnxruntime(),
        _coremltools(native),
        _microphone(),
    ]


def _onnxruntime() -> Finding:
    try:
        import onnxruntime as ort
    except ImportError as error:
        return Finding(
            "onnxruntime",
            f"cannot be loaded: {error}",
            Level.PROBLEM,
            "pip install --force-reinstall onnxruntime",
        )
    providers = ", ".join(name.removesuffix("ExecutionProvider") for name in ort.get_available_providers())
    return Finding("onnxruntime", f"{ort.__version__}, providers: {providers}")


def _coremltools(native: Runtime) -> Finding:
    installed = installed_version("coremltools")
    if native is not Runtime.COREML:
        here = f"{installed}: converts and describes packages here" if installed else "not installed"
        return Finding("coremltools", f"{here}; running them takes a Mac with Apple silicon", Level.NOTE)
    if installed is None:
        return Finding(
            "coremltools",
            "not installed: the Neural Engine stays unused",
            Level.WARNING,
            "pip install 'parakeet-live[coreml]'",
        )
    return Finding("coremltools", installed)


def _microphone() -> Finding:
    installed = installed_version("sounddevice")
    if installed is None:
        return Finding(
            "microphone",
            "no python-sounddevice; `parakeet-live listen` needs it unless audio is piped in",
            Level.NOTE,
        )
    return Finding("microphone", f"python-sounddevice {installed}")


def installed_version(package: str) -> str | None:
    """Version of an installed package; it is not loaded."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
