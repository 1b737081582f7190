"""A session without an engine: every step that is ready is run at once, by something that stands for the network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.events import Event
from parakeet_live.session.session import Session
from parakeet_models.mel import Float32


class SessionDriver(ABC):
    """Runs steps of up to ``largest`` encoder frames, and collects the events."""

    def __init__(self, session: Session, step_sizes: Sequence[int], largest: int) -> None:
        self.session = session
        self.events: list[Event] = []
        self._sizes = [size for size in step_sizes if size <= largest]

    @abstractmethod
    def hear(self, step: StepInput) -> list[Emission]:
        """What the network says to a step."""

    def feed(self, samples: Float32) -> None:
        self.session.push(samples)
        self.run()

    def finalize(self) -> None:
        self.events += self.session.finalize()
        self.run()

    def no_audio(self) -> None:
        self.events += self.session.no_audio()
        self.run()

    def cancel(self) -> None:
        self.events += self.session.cancel()
        self.run()

    def end(self) -> None:
        self.events += self.session.end()
        self.run()

    def run(self) -> None:
        while ready := self.session.ready_frames:
            self.step(max(size for size in self._sizes if size <= ready))

    def step(self, frames: int) -> None:
        self.events += self.session.apply(self.hear(self.session.next_step(0, frames)))
