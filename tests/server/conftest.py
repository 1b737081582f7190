from __future__ import annotations

import pytest

from parakeet_models.bundle import Bundle
from support.random_bundle import make_random_bundle


@pytest.fixture(scope="session")
def random_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A small bundle with random weights that emits words and ends of utterance."""
    return make_random_bundle(tmp_path_factory.mktemp("random-bundle"))
