"""Which models are here, whether they are whole, and which would run."""

from __future__ import annotations

import os
from pathlib import Path

from parakeet_live.doctor.findings import Finding, Level
from parakeet_models.bundle import BundleError, load_bundle
from parakeet_models.hub import (
    Candidate,
    Choice,
    FileState,
    Runtime,
    Store,
    candidates,
    choose,
    read_lock,
    verify_files,
)


def check_models(store: Store, native: Runtime) -> tuple[list[Finding], Choice]:
    """Every model here, and the choice when none is named. Raises HubError if the store cannot be read."""
    here = candidates(store, native)
    choice = choose(here)
    findings = [Finding("models", f"kept in {_short(store.root)}")]
    findings += [_model(candidate) for candidate in here]
    best = choice.candidate
    if best.embedded:
        findings.append(
            Finding(
                "runs",
                f"{best.name}: {choice.reason}",
                Level.NOTE,
                "it knows numbers, letters, telephone phrases and commands only",
            )
        )
    else:
        findings.append(Finding("runs", f"{best.name} ({choice.reason})"))
    return findings, choice


def _model(candidate: Candidate) -> Finding:
    subject = f"model {candidate.name}"
    size = f"{candidate.runtime}, {candidate.bytes / 1e6:.0f} MB"
    if damage := _damage(candidate):
        return Finding(subject, f"{size}; {damage}", Level.PROBLEM, "see: parakeet-live models verify")
    if candidate.problem:
        return Finding(subject, f"{size}, whole; does not run: {candidate.problem}", Level.NOTE)
    return Finding(subject, f"{size}, whole")


def _damage(candidate: Candidate) -> str:
    """What is wrong with its files, if anything."""
    if candidate.problem.startswith("is broken"):
        return candidate.problem
    lock = read_lock(candidate.directory)
    if lock is None:
        try:
            load_bundle(candidate.directory)
        except BundleError as error:
            return str(error)
        return ""
    bad = [
        found.path
        for found in verify_files(candidate.directory, lock.files)
        if found.state is not FileState.OK
    ]
    return f"damaged: {', '.join(bad)}" if bad else ""


def _short(path: Path) -> str:
    """Without the name of the user: reports are pasted into issues."""
    home = Path(os.path.expanduser("~"))
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)
