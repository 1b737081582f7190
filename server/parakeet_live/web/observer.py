"""What is counted, logged and traced of sessions and utterances: one place, called by those to whom it happens.

The audio path adds to plain numbers; everything else happens a few times in an utterance.
"""

from __future__ import annotations

import logging
from collections import Counter

from parakeet_live.engine.stats import Histogram
from parakeet_live.session.events import Event, Final
from parakeet_live.web.tracing import UtteranceTracer

log = logging.getLogger(__name__)

LATENCY_BOUNDS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Seconds."""


class Observer:
    """The counts of one server since its start. Owned by the event loop."""

    def __init__(self, *, log_transcripts: bool = False, tracer: UtteranceTracer | None = None) -> None:
        """Without ``log_transcripts`` no word of a speaker is in the log."""
        self.refused: Counter[str] = Counter()
        """Connections, by error code."""
        self.opened = 0
        self.resumed = 0
        self.closed: Counter[int] = Counter()
        """Sessions, by close code."""
        self.audio_samples = 0
        """At the model's rate."""
        self.finals: Counter[str] = Counter()
        """Finals with text, by reason."""
        self.partials_dropped = 0
        self.final_queue = Histogram(LATENCY_BOUNDS)
        self.final_compute = Histogram(LATENCY_BOUNDS)
        self.final_total = Histogram(LATENCY_BOUNDS)
        self._log_transcripts = log_transcripts
        self._tracer = tracer

    def session(self, session_id: str) -> SessionObserver:
        """A session was opened."""
        self.opened += 1
        return SessionObserver(self, session_id, self._tracer)

    def final(self, session_id: str, event: Final) -> None:
        """An utterance has got its final."""
        if event.text:
            self.finals[event.reason] += 1
        if event.timing is not None:
            self.final_queue.add(event.timing.queue_ms / 1000)
            self.final_compute.add(event.timing.compute_ms / 1000)
            self.final_total.add(event.timing.total_ms / 1000)
        if self._log_transcripts and event.text:
            log.info("session %s: final %d, %s: %s", session_id, event.utterance, event.reason, event.text)

    def shut_down(self) -> None:
        """Send what was traced. Blocks for as long as the receiver takes, some seconds at most."""
        if self._tracer is not None:
            self._tracer.shut_down()


class SessionObserver:
    """What one session reports."""

    def __init__(self, server: Observer, session_id: str, tracer: UtteranceTracer | None) -> None:
        self._server = server
        self._session_id = session_id
        self._spans = tracer.session(session_id) if tracer is not None else None

    def audio(self, samples: int) -> None:
        """Audio came in, at the model's rate."""
        self._server.audio_samples += samples

    def event(self, event: Event) -> None:
        """The recogniser has a result."""
        if self._spans is not None:
            self._spans.event(event)
        if isinstance(event, Final):
            self._server.final(self._session_id, event)

    def partial_dropped(self) -> None:
        """A partial gave way to a newer one because the client reads slowly."""
        self._server.partials_dropped += 1

    def resumed(self) -> None:
        """Another connection goes on with the session."""
        self._server.resumed += 1

    def closed(self, code: int) -> None:
        """The session is over; ``code`` is what its connection is closed with."""
        self._server.closed[code] += 1
