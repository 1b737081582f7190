"""What an engine asks of a backend: slots, mel in, tokens out. Nothing else crosses this border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32


class EngineError(Exception):
    """The engine failed; the streams it ran cannot go on."""


class CapacityError(EngineError):
    """Every slot is taken."""


@dataclass(frozen=True, slots=True)
class StepInput:
    """One step of one stream.

    ``mel`` float32[8n + 1, bins]: the last mel frame of the step before and 8n new ones; on a stream's first step
    eight frames of padding come first. ``begin`` counts the padding frames (8 on a first step, else 0), ``end`` is
    one past the last valid frame. ``restart`` resets the prediction network to the start of sequence first.
    """

    slot: int
    mel: Float32
    begin: int
    end: int
    restart: bool = False

    @property
    def frames(self) -> int:
        """Encoder frames of this step."""
        return (len(self.mel) - 1) // SUBSAMPLING_FACTOR


@dataclass(frozen=True, slots=True)
class Emission:
    """A token the decoder emitted: its id, the encoder frame within the step, and its softmax probability."""

    token: int
    frame: int
    probability: float


class Backend(Protocol):
    """Runs the network for up to ``slots`` streams.

    ``step`` may run on several threads at the same time for disjoint sets of slots; ``open`` and ``close`` are called
    on one thread, and never for a slot that a step uses.
    """

    @property
    def slots(self) -> int:
        """Streams that fit."""
        ...

    @property
    def best_batch(self) -> int:
        """Inputs of one ``step`` beyond which more gain nothing."""
        ...

    @property
    def lanes(self) -> int:
        """Calls of ``step`` worth making at the same time."""
        ...

    def home_of(self, slot: int) -> int | None:
        """Where the slot lives, if it cannot run on every lane: steps of one home would only wait for each other."""
        ...

    def open(self) -> int:
        """Take a free slot, reset to the start of a stream. Raises CapacityError."""
        ...

    def close(self, slot: int) -> None:
        """Give a slot back."""
        ...

    def step(self, inputs: Sequence[StepInput]) -> list[list[Emission]]:
        """Run one step each of distinct streams; emissions in the order of ``inputs``.

        Streams may be of any age and their steps of different sizes. A stream's result does not depend on the
        other streams.
        """
        ...

    def shut_down(self) -> None:
        """Release what outlives the object, such as processes. Steps that run may fail, and no other call follows."""
        ...
