"""OpenTelemetry: one span for each utterance, from its first sign to its final, with where the time went at its end.

Off unless asked for (`trace_utterances`), with the extra ``otel``. Where spans go and which are kept is said by
OpenTelemetry's own environment variables, such as OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_TRACES_SAMPLER. Spans hold
numbers, never what was said.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from parakeet_live.session.events import Event, Final, Partial

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

MILLISECOND = 1_000_000
"""Nanoseconds."""


class TracingUnavailableError(Exception):
    """The extra is not installed."""


class UtteranceTracer:
    """Makes spans. Raises TracingUnavailableError if OpenTelemetry is not installed."""

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        """``processor`` takes the finished spans; by default they are sent by OTLP over HTTP, in batches."""
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise TracingUnavailableError(str(error)) from error
        if processor is None:
            try:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            except ImportError as error:
                raise TracingUnavailableError(str(error)) from error
            processor = BatchSpanProcessor(OTLPSpanExporter())
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over the name given here.
        self._provider = TracerProvider(resource=Resource.create({"service.name": "parakeet-live"}))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("parakeet_live")

    def session(self, session_id: str) -> SessionSpans:
        """The spans of one session."""
        return SessionSpans(self, session_id)

    def utterance(self, session_id: str, started: int, final: Final) -> None:
        """An utterance is over now; ``started`` is when its first word came, in nanoseconds since 1970."""
        from opentelemetry.trace import set_span_in_context

        ended = time.time_ns()
        span = self._tracer.start_span(
            "utterance",
            start_time=started,
            attributes={
                "parakeet_live.session": session_id,
                "parakeet_live.utterance": final.utterance,
                "parakeet_live.reason": final.reason.value,
                "parakeet_live.words": len(final.words),
                "parakeet_live.audio_ms": final.audio_ms,
            },
        )
        if final.timing is not None:
            inside = set_span_in_context(span)
            run = ended - final.timing.compute_ms * MILLISECOND
            came = run - final.timing.queue_ms * MILLISECOND
            for name, start, end in (("queue", came, run), ("compute", run, ended)):
                self._tracer.start_span(name, inside, start_time=start).end(end)
        span.end(ended)

    def shut_down(self) -> None:
        """Send what is waiting."""
        self._provider.shutdown()


class SessionSpans:
    """Notes when the utterances of one session begin."""

    def __init__(self, tracer: UtteranceTracer, session_id: str) -> None:
        self._tracer = tracer
        self._session_id = session_id
        self._started: int | None = None

    def event(self, event: Event) -> None:
        """A result of the session, at this moment."""
        if isinstance(event, Partial) and self._started is None:
            self._started = time.time_ns()
        elif isinstance(event, Final):
            started, self._started = self._started, None
            if event.text:
                self._tracer.utterance(self._session_id, started or time.time_ns(), event)
