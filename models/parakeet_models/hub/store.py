"""The directory with pulled models: a folder for each, named by the model's short name.

Beside pulled models it may hold bundles that were converted into it, or copied from another machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from parakeet_models.bundle import MANIFEST_NAME
from parakeet_models.hub.errors import HubError
from parakeet_models.hub.lock import Lock, read_lock

DIRECTORY_VARIABLE = "PARAKEET_LIVE_MODELS_DIR"
"""Environment variable that names another directory."""
PARTIAL_NAME = ".partial"
"""Holds what is being pulled."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A complete model in the store."""

    name: str
    directory: Path
    lock: Lock | None
    """None for a bundle that was not pulled."""
    is_bundle: bool
    """It has a manifest of our own."""
    problem: str = ""
    """Why it cannot be read, if so."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where pulled models are."""

    root: Path

    @classmethod
    def default(cls) -> Store:
        """The directory of :data:`DIRECTORY_VARIABLE`, or the user's data directory of this operating system."""
        named = os.environ.get(DIRECTORY_VARIABLE)
        if named:
            return cls(Path(named).expanduser().absolute())
        return cls(platformdirs.user_data_path("parakeet-live", appauthor=False) / "models")

    def directory(self, name: str) -> Path:
        """Where the model of this name is, or would be."""
        return self.root / name

    def partial(self, name: str, revision: str) -> Path:
        """Where that revision of the model is while it is incomplete."""
        return self.root / PARTIAL_NAME / f"{name}@{revision[:12]}"

    def get(self, name: str) -> Stored | None:
        """The complete model of this name, or None.

        Raises:
            HubError: its lock file is broken.
        """
        if Path(name).name != name or name.startswith("."):
            return None
        directory = self.directory(name)
        lock = read_lock(directory)
        is_bundle = (directory / MANIFEST_NAME).is_file()
        return Stored(name, directory, lock, is_bundle) if lock or is_bundle else None

    def models(self) -> list[Stored]:
        """Every complete model, by name.

        Raises:
            HubError: the directory cannot be read.
        """
        try:
            names = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise HubError(f"{self.root}: cannot be read ({error.strerror})") from error
        return [stored for name in names if (stored := self._get_or_explain(name)) is not None]

    def _get_or_explain(self, name: str) -> Stored | None:
        try:
            return self.get(name)
        except HubError as error:
            return Stored(name, self.directory(name), None, False, str(error))
