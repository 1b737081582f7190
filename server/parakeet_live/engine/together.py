"""Many streams at the same time, each block by block as if it were live, as fast as the machine allows.

For measurements: what a session reports, and how much audio it had been given by then, is what a live stream
gets, computing time aside; and the network runs in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from parakeet_live.engine.backend import Backend
from parakeet_live.session.events import Event
from parakeet_live.session.session import Session
from parakeet_models.bundle import ModelInfo
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32

BLOCK_MS = 20
"""Audio handed over at a time: the grain of all measured delays."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event and the moment it came."""

    event: Event
    heard_ms: int
    """Audio handed over by then: what a live speaker waits for, computing time aside. Later than the event's own
    ``audio_ms``, because the model looks ahead and works in steps."""
    live: bool
    """False where it came only because the stream ended."""


@dataclass(frozen=True, slots=True)
class Track:
    """One stream to run."""

    length: int
    """Samples it will have."""
    start: Callable[[], tuple[Session, Float32]]
    """Called when its turn comes: a new session, and float32[length] mono at the model's rate."""


@dataclass(slots=True)
class _Running:
    number: int
    slot: int
    session: Session
    samples: Float32
    position: int = 0
    """Samples handed over."""
    ended: bool = False
    heard: list[Heard] = field(default_factory=list)

    def hand_over(self, count: int, rate: int) -> None:
        piece = self.samples[self.position : self.position + count]
        self.position += len(piece)
        self.session.push(piece)
        if len(piece) == 0 and not self.ended:
            self.ended = True
            self.note(self.session.end(), rate)

    def note(self, events: Iterable[Event], rate: int) -> None:
        heard_ms = self.position * 1000 // rate
        self.heard += [Heard(event, heard_ms, live=not self.ended) for event in events]


def run_together(
    manifest: ModelInfo,
    backend: Backend,
    tracks: Sequence[Track],
    on_progress: Callable[[float], None] = lambda seconds: None,
) -> Iterator[tuple[int, list[Heard]]]:
    """Streams every track through the backend's slots in live steps; yields (index, events) as tracks end.

    Long tracks come first, so that batches stay full. ``on_progress`` is told of seconds of audio just done.
    """
    rate, frames = manifest.mel.sample_rate, manifest.step_sizes[0]
    block = rate * BLOCK_MS // 1000
    step = frames * SUBSAMPLING_FACTOR * manifest.mel.hop_length
    order = sorted(range(len(tracks)), key=lambda number: tracks[number].length)
    running: list[_Running] = []
    while order or running:
        # All begin on the border of a step, so that their steps are ready at the same block and make one batch.
        while order and len(running) < backend.slots:
            number = order.pop()
            running.append(_Running(number, backend.open(), *tracks[number].start()))
        for _ in range(step // block):
            for stream in running:
                stream.hand_over(block, rate)
            while ready := [stream for stream in running if stream.session.ready_frames]:
                steps = [stream.session.next_step(stream.slot, frames) for stream in ready]
                for stream, emissions in zip(ready, backend.step(steps), strict=True):
                    stream.note(stream.session.apply(emissions), rate)
        on_progress(len(running) * step / rate)
        for stream in [stream for stream in running if stream.session.done]:
            running.remove(stream)
            backend.close(stream.slot)
            yield stream.number, stream.heard
