"""All checks in their order, and what came out of them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from parakeet_live.doctor.findings import Finding, Level, Run, run_command
from parakeet_live.doctor.linux import check_linux
from parakeet_live.doctor.mac import check_mac
from parakeet_live.doctor.measure import Speed, measure, speed_findings
from parakeet_live.doctor.models import check_models
from parakeet_live.doctor.ports import check_port
from parakeet_live.doctor.software import check_software
from parakeet_live.doctor.verify import Outcome, run_trial, trials
from parakeet_live.engine.backend import EngineError
from parakeet_models.bundle import Bundle, BundleError, read_manifest
from parakeet_models.hub import Runtime, Store, candidates
from parakeet_models.layouts import AnyBundle, load_model

ONLY_ON_A_MAC = (
    "that Core ML accepts the packages and computes the same on each compute unit",
    "which operations the Neural Engine takes",
    "load time and time of a step on a Mac",
)
"""What --verify cannot say anywhere else."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What to look at: the model (None: the one that runs by itself), and a reference to compare it with."""

    model: Path | None = None
    reference: Path | None = None
    seconds: float = 10.0
    verify: bool = False
    host: str = "127.0.0.1"
    port: int = 8765


@dataclass(frozen=True, slots=True)
class Checkup:
    """Everything that was found. ``outcomes`` are those of --verify, the first is the reference of the others."""

    time: datetime
    model: str
    findings: tuple[Finding, ...]
    speed: Speed | None = None
    outcomes: tuple[Outcome, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Live recognition works here."""
        return all(finding.level is not Level.PROBLEM for finding in self.findings)


def check_up(
    request: Request,
    store: Store,
    native: Runtime,
    report: Report = lambda text: None,
    system: str | None = None,
) -> Checkup:
    """Check this computer. Raises HubError if the store of models cannot be read."""
    started = datetime.now(UTC).replace(microsecond=0)
    findings = list(_computer(request, system or platform.system(), native, run_command))
    report("checking models")
    found, choice = check_models(store, native)
    findings += found
    directory = request.model or choice.candidate.directory
    name, speed, outcomes = str(directory), None, list[Outcome]()
    try:
        bundle = load_model(directory)
        name = bundle.manifest.name
        if request.seconds:
            speed = measure(bundle, seconds=request.seconds, report=report)
            findings += speed_findings(speed)
        if request.verify:
            outcomes = _verify(bundle, request.reference or _same_network(bundle, store, native), report)
            findings += [_compared(outcome, outcomes[0]) for outcome in outcomes]
    except (BundleError, EngineError) as error:
        findings.append(Finding("model", str(error), Level.PROBLEM, "name another one with --model"))
    unchecked = ONLY_ON_A_MAC if request.verify and native is not Runtime.COREML else ()
    return Checkup(started, name, tuple(findings), speed, tuple(outcomes), unchecked)


def _computer(request: Request, system: str, native: Runtime, run: Run) -> Iterator[Finding]:
    """Everything but models and speed."""
    if system == "Darwin":
        yield from check_mac(run)
    elif system == "Linux":
        yield from check_linux()
    else:
        yield Finding("machine", f"{platform.processor() or platform.machine()}, {platform.platform()}")
    yield from check_software(native)
    yield check_port(request.host, request.port)


def _same_network(bundle: AnyBundle, store: Store, native: Runtime) -> Path | None:
    """An ONNX bundle here that was converted from the same network as these Core ML packages."""
    if not isinstance(bundle, Bundle) or bundle.manifest.runtime != "coreml":
        return None
    onnx = [here for here in candidates(store, native) if here.converted and here.runtime is Runtime.ONNX]
    names = {here.directory: read_manifest(here.directory).name for here in onnx if not here.problem}
    return next((directory for directory, name in names.items() if name == bundle.manifest.name), None)


def _verify(bundle: AnyBundle, reference: Path | None, report: Report) -> list[Outcome]:
    """Run the reference, if one is named, and then the model in every way."""
    ways = trials(bundle)
    if reference is not None:
        first = trials(load_model(reference))[0]
        ways.insert(0, replace(first, name=f"reference: {first.bundle.manifest.name}"))
    outcomes = []
    for way in ways:
        report(f"running on {way.name}")
        outcomes.append(run_trial(way))
    return outcomes


def _compared(outcome: Outcome, reference: Outcome) -> Finding:
    subject = f"verify {outcome.name}"
    if outcome.error:
        return Finding(
            subject, f"does not run: {outcome.error}", Level.WARNING, "report it, with --verify's report"
        )
    if outcome is reference:
        return Finding(subject, f"{len(outcome.tokens)} tokens, the reference")
    agreement, shift = outcome.agreement(reference), outcome.largest_shift(reference)
    if shift is None:
        return Finding(
            subject,
            f"{agreement:.1%} of the tokens as in {reference.name}",
            Level.WARNING,
            "listen whether its text is worse; report it, with --verify's report",
        )
    return Finding(
        subject, f"the same {len(outcome.tokens)} tokens as {reference.name}, at most {shift} frames apart"
    )
