"""A checkup as Markdown to paste into an issue, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from parakeet_live.doctor.checkup import Checkup
from parakeet_live.doctor.verify import Outcome


def as_data(checkup: Checkup) -> dict[str, Any]:
    """Everything, in types that JSON has."""
    speed = checkup.speed
    return {
        "time": checkup.time.isoformat(),
        "healthy": checkup.healthy,
        "model": checkup.model,
        "findings": [asdict(finding) for finding in checkup.findings],
        "speed": asdict(speed)
        | {"real_time_factor": speed.real_time_factor, "suggested_streams": speed.suggested_streams}
        if speed
        else None,
        "verify": [
            asdict(outcome)
            | {
                "agreement": outcome.agreement(checkup.outcomes[0]),
                "largest_shift": outcome.largest_shift(checkup.outcomes[0]),
            }
            for outcome in checkup.outcomes
        ],
        "unchecked": list(checkup.unchecked),
    }


def markdown(checkup: Checkup) -> Iterator[str]:
    """Lines of a report: what was found, what every way to run gave, and what remains unchecked."""
    yield f"### parakeet-live {version('parakeet-live')} doctor --verify, {checkup.time:%Y-%m-%d}, {checkup.model}"
    yield ""
    yield "| | | |"
    yield "|---|---|---|"
    for finding in checkup.findings:
        yield f"| {_cell(finding.subject)} | {finding.level} | {_cell(finding.value)} |"
    yield ""
    yield "| run on | load s | step p50 / p95 ms | real-time factor | tokens | as the reference | text |"
    yield "|---|---|---|---|---|---|---|"
    for outcome in checkup.outcomes:
        yield _row(outcome, checkup.outcomes[0])
    if checkup.unchecked:
        yield ""
        yield "Not checked, because it takes a Mac with Apple silicon:"
        yield from (f"- {statement}" for statement in checkup.unchecked)


def _row(outcome: Outcome, reference: Outcome) -> str:
    if outcome.error:
        return f"| {outcome.name} | {_cell(outcome.error)} | | | | | |"
    shift = outcome.largest_shift(reference)
    same = f"{outcome.agreement(reference):.1%}" + ("" if shift is None else f", {shift} frames apart")
    median, high = outcome.step_ms
    return (
        f"| {outcome.name} | {outcome.load_seconds:.1f} | {median:.1f} / {high:.1f} "
        f"| {outcome.real_time_factor:.3f} | {len(outcome.tokens)} | {same} | {_cell(outcome.text)} |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
