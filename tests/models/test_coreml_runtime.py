"""What finds and loads packages, without the system that runs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parakeet_models.coreml_runtime import (
    RUNTIME_VARIABLE,
    CoremlUnavailableError,
    autorelease_pool,
    check_runtime,
    compiled_package,
    find_runtime,
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "encoder.mlpackage"
    (path / "Data").mkdir(parents=True)
    (path / "Data" / "model.mlmodel").write_text("one")
    return path


class Compiler:
    """Stands for ``coremltools.utils.compile_model``."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, package: str, destination: str) -> str:
        self.runs += 1
        Path(destination).mkdir()
        (Path(destination) / "model.mil").write_text((Path(package) / "Data" / "model.mlmodel").read_text())
        return destination


def test_a_package_is_compiled_once(package: Path, tmp_path: Path) -> None:
    compiler, cache = Compiler(), tmp_path / "cache"
    first = compiled_package(package, cache, compiler)
    assert compiled_package(package, cache, compiler) == first
    assert compiler.runs == 1
    assert [path.name for path in cache.iterdir()] == [first.name]


def test_a_package_that_changes_is_compiled_again_and_its_old_form_dropped(
    package: Path, tmp_path: Path
) -> None:
    compiler, cache = Compiler(), tmp_path / "cache"
    compiled_package(package, cache, compiler)
    (package / "Data" / "model.mlmodel").write_text("two, longer")
    second = compiled_package(package, cache, compiler)
    assert (second / "model.mil").read_text() == "two, longer"
    assert list(cache.iterdir()) == [second]


def test_packages_do_not_drop_each_other(package: Path, tmp_path: Path) -> None:
    compiler, cache = Compiler(), tmp_path / "cache"
    other = tmp_path / "joint.mlpackage"
    (other / "Data").mkdir(parents=True)
    (other / "Data" / "model.mlmodel").write_text("joint")
    both = [compiled_package(path, cache, compiler) for path in (package, other)]
    assert sorted(cache.iterdir()) == sorted(both)


def test_what_is_not_used_for_long_is_dropped(package: Path, tmp_path: Path) -> None:
    compiler, cache = Compiler(), tmp_path / "cache"
    forgotten, used = cache / "0-0.mlmodelc", cache / "1-1.mlmodelc"
    for path in (forgotten, used):
        path.mkdir(parents=True)
    os.utime(forgotten, (0, 0))
    compiled = compiled_package(package, cache, compiler)
    assert sorted(cache.iterdir()) == sorted([used, compiled])
    os.utime(compiled, (0, 0))
    compiled_package(package, cache, compiler)
    assert compiled.stat().st_mtime > 0


def test_two_processes_that_compile_at_once(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    def slow(source: str, destination: str) -> str:
        compiled_package(package, cache, Compiler())  # the other one is faster
        return Compiler()(source, destination)

    compiled = compiled_package(package, cache, slow)
    assert (compiled / "model.mil").read_text() == "one"
    assert list(cache.iterdir()) == [compiled]


def test_elsewhere_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(CoremlUnavailableError, match="on macOS only; use an ONNX model here"):
        find_runtime()
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("parakeet_models.coreml_runtime.find_spec", lambda name: None)
    with pytest.raises(CoremlUnavailableError, match=r"pip install 'parakeet-live\[coreml\]'"):
        check_runtime()


@pytest.mark.parametrize("hook", ["no_such_module:open", "os:no_such_function", "os"])
def test_a_hook_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    monkeypatch.setenv(RUNTIME_VARIABLE, hook)
    with pytest.raises(CoremlUnavailableError, match=f"{RUNTIME_VARIABLE}={hook}"):
        find_runtime()


def test_the_hook_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNTIME_VARIABLE, "os:getcwd")
    check_runtime()
    assert find_runtime() is os.getcwd


def test_a_pool_elsewhere_is_nothing() -> None:
    with autorelease_pool():
        pass
