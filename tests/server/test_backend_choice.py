"""Which backend runs which bundle, and what a user reads where none does."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from parakeet_live.cli import app
from parakeet_live.demo import RECORDING
from parakeet_models.bundle import Bundle
from parakeet_models.coreml_runtime import RUNTIME_VARIABLE

DATA = Path(__file__).parents[1] / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", [("transcribe", RECORDING), ("bench", "--seconds", 1)])
def test_a_backend_that_does_not_run_the_bundle(command: tuple[object, ...], embedded_graphs: Bundle) -> None:
    result = run(*command, "--model", embedded_graphs.directory, "--backend", "coreml")
    assert result.exit_code == 1
    assert "is a model for onnx, which the backend coreml does not run" in result.stderr
    assert "models convert SOURCE --to coreml" in result.stderr


def test_other_backends_refuse_it(embedded_packages: Bundle) -> None:
    result = run("transcribe", RECORDING, "--model", embedded_packages.directory, "--backend", "onnx")
    assert result.exit_code == 1
    assert "is a model for coreml, which the backend onnx does not run" in result.stderr


def test_it_does_not_run_off_the_mac(embedded_packages: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    result = run("transcribe", RECORDING, "--model", embedded_packages.directory)
    assert result.exit_code == 1
    assert "Core ML models run on macOS only; use an ONNX model here" in result.stderr


def test_it_does_not_run_without_coremltools(
    embedded_packages: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("parakeet_models.coreml_runtime.find_spec", lambda name: None)
    result = run("eval", DATA / "manifest.jsonl", "--model", embedded_packages.directory)
    assert result.exit_code == 1
    assert "pip install 'parakeet-live[coreml]'" in result.stderr


def test_a_stand_in_that_leads_nowhere(embedded_packages: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen by the worker process, and not tried again on other processors."""
    monkeypatch.setenv(RUNTIME_VARIABLE, "no_such_module:open")
    result = run("transcribe", RECORDING, "--model", embedded_packages.directory)
    assert result.exit_code == 1
    assert "No module named 'no_such_module'" in result.stderr
    assert "trying other processors" not in result.stderr


def test_processors_that_do_not_work_are_given_up(
    embedded_packages: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Neural Engine kills the process, the GPU's numbers are none, the CPU works."""
    monkeypatch.setenv(RUNTIME_VARIABLE, "support.broken_processors:open_interpreted")
    result = run("transcribe", RECORDING, "--model", embedded_packages.directory)
    assert result.exit_code == 0, result.stderr
    assert "does not run on CPU_AND_NE: the recognition process ended while it loaded" in result.stderr
    assert "does not run on CPU_AND_GPU: the encoder does not compute on CPU_AND_GPU" in result.stderr
    assert "loaded encoder on CPU_ONLY in" in result.stderr
    assert result.stdout
