"""OpenTelemetry spans: one for each utterance, in the exporter's memory and over the wire; and none of it unasked."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_live.web import app
from parakeet_live.web.tracing import UtteranceTracer
from parakeet_models.bundle import Bundle
from support.in_process import serving
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, cut, session

PCM = (noise(3.0, 1) * 32767).astype("<i2").tobytes()


async def test_each_utterance_has_a_span_with_its_times(
    random_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(app, "UtteranceTracer", lambda: UtteranceTracer(SimpleSpanProcessor(exporter)))
    settings = Settings(warm_up=False, trace_utterances=True)
    async with serving(Recognizer.load(random_bundle, max_streams=1), settings) as url:
        outcome = await session(url, [*cut(PCM, 3200), END])
    finals = [final for final in outcome.of("final") if final["text"]]
    assert finals
    spans = exporter.get_finished_spans()
    utterances = [span for span in spans if span.name == "utterance"]
    assert [attribute(span, "utterance") for span in utterances] == [final["utterance"] for final in finals]
    for span, final in zip(utterances, finals, strict=True):
        assert attribute(span, "session") == outcome.messages[0]["session"]
        assert attribute(span, "reason") == final["reason"]
        assert attribute(span, "words") == len(final["words"])
        assert span.resource.attributes["service.name"] == "parakeet-live"
        inner = {
            child.name: child
            for child in spans
            if child.parent and child.parent.span_id == span.context.span_id
        }
        assert set(inner) == {"queue", "compute"}
        assert milliseconds(inner["queue"]) == final["timing"]["queue_ms"]
        assert milliseconds(inner["compute"]) == final["timing"]["compute_ms"]
        assert inner["queue"].end_time == inner["compute"].start_time
        assert inner["compute"].end_time == span.end_time >= span.start_time
        names = {"session", "utterance", "reason", "words", "audio_ms"}
        assert set(span.attributes or ()) == {f"parakeet_live.{name}" for name in names}, (
            "never what was said"
        )


def attribute(span: ReadableSpan, name: str) -> object:
    assert span.attributes is not None
    return span.attributes[f"parakeet_live.{name}"]


def milliseconds(span: ReadableSpan) -> int:
    assert span.start_time is not None
    assert span.end_time is not None
    return round((span.end_time - span.start_time) / 1e6)


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A receiver of OTLP over HTTP: its URL, and the bodies that came."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
        server.shutdown()
        thread.join()


async def test_spans_are_sent_before_the_server_ends(
    random_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: tuple[str, list[bytes]]
) -> None:
    endpoint, bodies = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    options = ["--model", str(random_bundle.directory), "--trace-utterances"]
    with running_server(tmp_path / "log", *options) as url:
        outcome = await session(url, [PCM, END])
    spoken = len([final for final in outcome.of("final") if final["text"]])
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    names = [
        span.name
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert names.count("utterance") == spoken > 0


def test_without_the_extra_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['opentelemetry.sdk'] = None; from parakeet_live.__main__ import main; main()"
    )
    command = [sys.executable, "-c", program, "serve", "--trace-utterances", "--model", "tiny-en"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert "pip install 'parakeet-live[otel]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_of_it_is_loaded_unasked() -> None:
    program = "import sys, parakeet_live.web.run; print([m for m in sys.modules if m.startswith('opentelemetry.sdk')])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
