"""Slots on worker processes: the Core ML backend as the engine sees it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from parakeet_live.engine.backend import CapacityError, Emission, EngineError, StepInput
from parakeet_live.engine.coreml.options import ENCODER_UNITS, FALLBACKS, CoremlOptions
from parakeet_live.engine.coreml.process import Report, UnavailableError
from parakeet_live.engine.coreml.replica import Replica
from parakeet_live.engine.coreml.worker import Job
from parakeet_models.coreml_runtime import CoremlUnavailableError, check_runtime
from parakeet_models.layouts import AnyBundle, ForeignBundle


class CoremlBackend:
    """Knows which slot lives where; the state of a stream is in the worker process of its slot's replica."""

    def __init__(self, bundle: AnyBundle, slots: int, options: CoremlOptions, report: Report) -> None:
        """Start the workers and wait for them. ``report`` is told what is going on.

        Raises:
            EngineError: the model cannot run here.
        """
        try:
            check_runtime()
        except CoremlUnavailableError as error:
            raise EngineError(str(error)) from error
        manifest = None if isinstance(bundle, ForeignBundle) else bundle.manifest
        job = Job(directory=bundle.directory, manifest=manifest, slots=slots, options=options)
        first, job = _first_replica(job, report)
        self._replicas = [first, *(Replica(job, report) for _ in range(options.replicas - 1))]
        for number, replica in enumerate(self._replicas):
            report(f"recognition process {number + 1} of {options.replicas} is ready: {replica.summary}")
        self._home = [slot % options.replicas for slot in range(slots)]
        self._generation: list[int | None] = [None] * slots
        self._free = set(range(slots))

    @property
    def slots(self) -> int:
        return len(self._home)

    @property
    def best_batch(self) -> int:
        """The packages have a batch of one: flexible shapes do not run on the Neural Engine."""
        return 1

    @property
    def lanes(self) -> int:
        return len(self._replicas)

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers, by replica."""
        return tuple(replica.pid for replica in self._replicas)

    def home_of(self, slot: int) -> int:
        return self._home[slot]

    def open(self) -> int:
        if not self._free:
            raise CapacityError(
                f"all {self.slots} slots are taken; close a stream or raise the number of slots"
            )
        free = [0] * len(self._replicas)
        for slot in self._free:
            free[self._home[slot]] += 1
        # On the replica with the most room, and there the lowest.
        slot = min(self._free, key=lambda slot: (-free[self._home[slot]], slot))
        self._free.remove(slot)
        self._generation[slot] = None
        return slot

    def close(self, slot: int) -> None:
        self._free.add(slot)

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        results = []
        for step in inputs:
            replica = self._replicas[self._home[step.slot]]
            emissions, self._generation[step.slot] = replica.step(step, self._generation[step.slot])
            results.append(emissions)
        return results

    def shut_down(self) -> None:
        for replica in self._replicas:
            replica.stop()


def _first_replica(job: Job, report: Report) -> tuple[Replica, Job]:
    """A replica on the first processors where the encoder runs, and the job that says so.

    Some machines load a model for the Neural Engine and die at the first prediction; that is seen here, in a process
    of its own.
    """
    wanted = job.options.encoder or ENCODER_UNITS
    choices = (wanted,) if job.options.encoder else (wanted, *FALLBACKS[wanted])
    for units in choices:
        options = dataclasses.replace(job.options, encoder=units)
        attempt = job.model_copy(update={"options": options})
        try:
            return Replica(attempt, report), attempt
        except UnavailableError:
            raise
        except EngineError as error:
            if units == choices[-1]:
                raise
            report(f"warning: the encoder does not run on {units}: {error}; trying other processors")
    raise AssertionError("there is always a last choice")
