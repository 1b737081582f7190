"""Servers for the tests: real processes, spoken to through real sockets."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from parakeet_models.bundle import Bundle, embedded_bundle
from parakeet_models.hub import DIRECTORY_VARIABLE
from support.backends import COREML, for_tested_backend, model_options
from support.coreml import require_coremltools
from support.coreml_bundle import packaged, use_interpreter
from support.layouts.look_alikes import LookAlikes
from support.random_bundle import make_random_bundle
from support.server_process import running_server

# The networks of the tests are small: a second thread gains nothing and waits by spinning.
torch.set_num_threads(1)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start background jobs so, and every process that the tests start and interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_models_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands without --model must not find what the person who runs the tests has pulled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY_VARIABLE, str(tmp_path_factory.mktemp("models")))
        yield


POOL = ("--max-streams", "64")
"""Not as many as this machine carries: it may be busy while it is measured, and these tests may take their time."""


@pytest.fixture(scope="session")
def random_graphs(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A small ONNX bundle with random weights that emits words and ends of utterance."""
    return make_random_bundle(tmp_path_factory.mktemp("random-bundle"))


@pytest.fixture(scope="session")
def packages_cache(pytestconfig: pytest.Config) -> Path:
    """Where Core ML packages of the tests' networks are kept from run to run."""
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("coreml-packages")


@pytest.fixture(scope="session")
def random_bundle(random_graphs: Bundle, packages_cache: Path) -> Bundle:
    """The same, as the tested backend runs it."""
    return for_tested_backend(random_graphs, packages_cache)


@pytest.fixture(scope="session")
def embedded_graphs() -> Bundle:
    """The embedded model, as it ships."""
    return embedded_bundle()


@pytest.fixture(scope="session")
def look_alikes(tmp_path_factory: pytest.TempPathFactory) -> LookAlikes:
    """Published exports of the embedded model, each made when it is first asked for."""
    return LookAlikes(tmp_path_factory.mktemp("look-alikes"))


@pytest.fixture(scope="session")
def embedded(packages_cache: Path) -> Bundle:
    """The embedded model, as the tested backend runs it."""
    return for_tested_backend(embedded_bundle(), packages_cache, (2, 16))


@pytest.fixture(scope="session")
def embedded_options(embedded: Bundle) -> tuple[str, ...]:
    """Options of a command that is to run the embedded model on the tested backend."""
    return model_options(embedded)


@pytest.fixture(scope="session")
def embedded_packages(packages_cache: Path) -> Bundle:
    """The embedded model as Core ML packages, whatever the tested backend is."""
    require_coremltools()
    return packaged(embedded_bundle(), packages_cache)


@pytest.fixture(scope="session")
def interpreter() -> None:
    """Core ML packages are interpreted from now on, in all processes."""
    use_interpreter()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that say so run on ONNX Runtime alone."""
    for item in items:
        if COREML and (marker := item.get_closest_marker("onnx_only")):
            item.add_marker(pytest.mark.skip(reason=marker.args[0]))


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory, embedded_options: tuple[str, ...]) -> Iterator[str]:
    """A server with the embedded model: for tests of recognition."""
    with running_server(tmp_path_factory.mktemp("server") / "log", *POOL, *embedded_options) as url:
        yield url


@pytest.fixture(scope="session")
def babble_url(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[str]:
    """A server whose model emits words for any sound: for tests of the protocol."""
    log = tmp_path_factory.mktemp("babble") / "log"
    with running_server(log, "--model", str(random_bundle.directory), *POOL) as url:
        yield url


@pytest.fixture
def small_server_url(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[str]:
    """A server of its own for one test, with room for two streams, no queue, and no way to resume."""
    log = tmp_path_factory.mktemp("small") / "log"
    options = ("--max-streams", "2", "--max-waiting", "0", "--resume-window-s", "0")
    with running_server(log, "--model", str(random_bundle.directory), *options) as url:
        yield url
