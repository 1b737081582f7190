"""Which of the models that are here runs best on this computer."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parakeet_models.bundle import EMBEDDED_NAME, BundleError, embedded_bundle, read_manifest
from parakeet_models.hub.catalogue import CATALOGUE, Runtime, Standing, find, lookup
from parakeet_models.hub.errors import HubError
from parakeet_models.hub.store import Store, Stored

STATE_MACOS = 15
"""First one with Core ML's states."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that is here, and why it cannot be chosen, if so."""

    name: str
    directory: Path
    runtime: Runtime
    converted: bool
    """A bundle of our own format: its graphs are the fastest here."""
    bytes: int
    licence: str
    problem: str = ""
    embedded: bool = False
    """It ships with the package."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs when no model is named, and why."""

    candidate: Candidate
    reason: str


def candidates(store: Store, native: Runtime) -> list[Candidate]:
    """Every model that is here, best first: those that can run, on the native runtime, converted ones, then in the
    order of the catalogue. The embedded model comes last of those that can run.

    Raises:
        HubError: the store cannot be read.
    """
    found = [_candidate(stored, native) for stored in store.models()]
    order = [entry.name for entry in CATALOGUE]

    def rank(candidate: Candidate) -> tuple[object, ...]:
        known = order.index(candidate.name) if candidate.name in order else len(order)
        return (candidate.runtime is not native, not candidate.converted, known, candidate.name)

    found.sort(key=rank)
    able = [candidate for candidate in found if not candidate.problem]
    return [*able, _embedded(), *(candidate for candidate in found if candidate.problem)]


def choose(all_candidates: Sequence[Candidate]) -> Choice:
    """The first of :func:`candidates`, with the reason in words."""
    best = all_candidates[0]
    if best.embedded:
        problems = [f"{other.name} {other.problem}" for other in all_candidates if other.problem]
        reason = f"nothing else can run: {'; '.join(problems)}" if problems else "no other model is here"
        return Choice(best, f"embedded; {reason}. `parakeet-live models pull` gets the full-size model")
    others = [other.name for other in all_candidates[1:] if not other.problem and not other.embedded]
    kind = "converted" if best.converted else "published"
    rank = f"preferred to {', '.join(others)}" if others else "the best that is here"
    return Choice(best, f"{kind}, {best.runtime}; {rank}")


def _embedded() -> Candidate:
    bundle = embedded_bundle()
    size = sum(file.bytes for file in bundle.manifest.files)
    return Candidate(
        EMBEDDED_NAME, bundle.directory, Runtime.ONNX, True, size, bundle.manifest.licence, embedded=True
    )


def _candidate(stored: Stored, native: Runtime) -> Candidate:
    if stored.is_bundle:
        return _converted(stored, native)
    entry = lookup(stored.name)
    runtime = entry.runtime if entry else native
    lock = stored.lock
    if lock is None:
        return Candidate(stored.name, stored.directory, runtime, False, 0, "", f"is broken: {stored.problem}")
    if entry is None:
        problem = "is not in the catalogue"
    else:
        problem = {
            Standing.CONVERT: "must be converted first",
            Standing.REFUSED: "would be refused",
            Standing.LAYOUT: _elsewhere(entry.runtime, native),
        }[entry.standing]
    licence = lock.licence or (entry.licence if entry else "")
    return Candidate(stored.name, stored.directory, runtime, False, lock.bytes, licence, problem)


def _converted(stored: Stored, native: Runtime) -> Candidate:
    try:
        manifest = read_manifest(stored.directory)
    except BundleError as error:
        return Candidate(stored.name, stored.directory, native, True, 0, "", f"is broken: {error}")
    runtime = Runtime(manifest.runtime)
    problem = _elsewhere(runtime, native)
    if manifest.weights_origin == "random":
        problem = "has random weights"
    elif manifest.coreml is not None and manifest.coreml.state == "mlstate" and 0 < _macos() < STATE_MACOS:
        problem = f"keeps its caches in Core ML's states, which macOS {STATE_MACOS} has"
    size = sum(file.bytes for file in manifest.files)
    return Candidate(stored.name, stored.directory, runtime, True, size, manifest.licence, problem)


def _macos() -> int:
    """The major version of macOS, 0 elsewhere."""
    return int(platform.mac_ver()[0].partition(".")[0] or 0)


def _elsewhere(runtime: Runtime, native: Runtime) -> str:
    return "runs on a Mac with Apple silicon only" if runtime is Runtime.COREML is not native else ""


def resolve(name: str, store: Store) -> Path:
    """The directory of a model given by short name or repository.

    Raises:
        HubError: there is no such model here; says how to get it, or what may have been meant.
    """
    if name == EMBEDDED_NAME:
        return embedded_bundle().directory
    if (stored := store.get(name)) is not None:
        return stored.directory
    entry = find(name, more=[EMBEDDED_NAME, *(stored.name for stored in store.models())])
    if (stored := store.get(entry.name)) is not None:
        return stored.directory
    raise HubError(f"{entry.name} is not here yet; get it: parakeet-live models pull {entry.name}")
