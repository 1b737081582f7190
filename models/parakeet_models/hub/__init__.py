"""Published weights: a catalogue of short names, a store on disk, pulls from the Hugging Face Hub, verification.

Importing this package does not import the hub's library: :mod:`parakeet_models.hub.pull` does.
"""

from parakeet_models.hub.catalogue import (
    CATALOGUE,
    Entry,
    Runtime,
    Standing,
    default_entry,
    find,
    lookup,
    native_runtime,
)
from parakeet_models.hub.choice import Candidate, Choice, candidates, choose, resolve
from parakeet_models.hub.errors import HubError
from parakeet_models.hub.lock import LOCK_NAME, FileState, Finding, Lock, LockedFile, read_lock, verify_files
from parakeet_models.hub.store import DIRECTORY_VARIABLE, Store, Stored

__all__ = [
    "CATALOGUE",
    "DIRECTORY_VARIABLE",
    "LOCK_NAME",
    "Candidate",
    "Choice",
    "Entry",
    "FileState",
    "Finding",
    "HubError",
    "Lock",
    "LockedFile",
    "Runtime",
    "Standing",
    "Store",
    "Stored",
    "candidates",
    "choose",
    "default_entry",
    "find",
    "lookup",
    "native_runtime",
    "read_lock",
    "resolve",
    "verify_files",
]
