"""Servers for the tests: real processes, spoken to through real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from parakeet_models.bundle import Bundle
from parakeet_models.hub import DIRECTORY_VARIABLE
from support.random_bundle import make_random_bundle
from support.server_process import running_server

# The networks of the tests are small: a second thread gains nothing and waits by spinning.
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _no_models_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands without --model must not find what the person who runs the tests has pulled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY_VARIABLE, str(tmp_path_factory.mktemp("models")))
        yield


@pytest.fixture(scope="session")
def random_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A small bundle with random weights that emits words and ends of utterance."""
    return make_random_bundle(tmp_path_factory.mktemp("random-bundle"))


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the embedded model: for tests of recognition."""
    with running_server(tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def babble_url(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[str]:
    """A server whose model emits words for any sound: for tests of the protocol."""
    log = tmp_path_factory.mktemp("babble") / "log"
    with running_server(log, "--model", str(random_bundle.directory)) as url:
        yield url


@pytest.fixture
def small_server_url(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[str]:
    """A server of its own for one test, with room for two streams."""
    log = tmp_path_factory.mktemp("small") / "log"
    with running_server(log, "--model", str(random_bundle.directory), "--max-streams", "2") as url:
        yield url
