"""What a backend and its worker say to each other: frames of bytes, in the byte order of the machine they share.

A frame is its kind, the length of its body, and the body. The worker answers LOAD by any number of PROGRESS and one
READY, FAILED or UNAVAILABLE, and each STEP by one EMISSIONS or FAILED.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct

import numpy as np

from parakeet_live.engine.backend import Emission, StepInput

HEADER = Struct("=BI")
STEP = Struct("=IIIIBB")
EMISSION = Struct("=IIf")


class Kind(IntEnum):
    """Kinds of frames, with what their bodies hold."""

    LOAD = 1
    """JSON of a ``worker.Job``."""
    STEP = 2
    """See :func:`pack_step`."""
    PROGRESS = 3
    """Text for people: what the worker does now."""
    READY = 4
    """Text for people: what was loaded, and how fast it is."""
    EMISSIONS = 5
    """See :func:`pack_emissions`."""
    FAILED = 6
    """Text for people: why there is no result."""
    UNAVAILABLE = 7
    """Text for people: why the model cannot be loaded here, on whatever processors."""


def pack_step(step: StepInput, fresh: bool) -> bytes:
    """A step; with ``fresh`` it is the first of another stream on its slot."""
    head = STEP.pack(step.slot, len(step.mel), step.begin, step.end, step.restart, fresh)
    return head + step.mel.astype(np.float32, copy=False).tobytes()


def unpack_step(body: bytes) -> tuple[StepInput, bool]:
    """The inverse of :func:`pack_step`."""
    slot, rows, begin, end, restart, fresh = STEP.unpack_from(body)
    mel = np.frombuffer(body, np.float32, offset=STEP.size).reshape(rows, -1)
    return StepInput(slot, mel, begin, end, bool(restart)), bool(fresh)


def pack_emissions(emissions: Sequence[Emission]) -> bytes:
    """The tokens of one step."""
    return b"".join(EMISSION.pack(e.token, e.frame, e.probability) for e in emissions)


def unpack_emissions(body: bytes) -> Iterator[Emission]:
    """The inverse of :func:`pack_emissions`; probabilities are fp32."""
    return (Emission(*fields) for fields in EMISSION.iter_unpack(body))
