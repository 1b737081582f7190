"""Reads NeMo's ``.nemo`` archives without trusting them and without NeMo. Needs the extra ``convert``."""

from parakeet_models.nemo.archive import NemoArchive, read_archive
from parakeet_models.nemo.errors import NemoError
from parakeet_models.nemo.model import NemoModel, load_nemo

__all__ = ["NemoArchive", "NemoError", "NemoModel", "load_nemo", "read_archive"]
