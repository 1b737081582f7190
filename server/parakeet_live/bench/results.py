"""From the log of a stream to its results: latencies and transcript.

The latency of a result is the time from sending the last sample it covers (its ``audio_ms``) to its arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parakeet_client.events import Done, Error, Final, Partial, parse
from parakeet_live.bench.load import StreamLog

MODEL_ENDS = ("eou", "backchannel")
"""Reasons of finals that a live conversation waits for. The final of a stream's end answers a command."""

Utterance = tuple[str, tuple[tuple[str, int, int], ...]]
"""Text of a final, and of each word text, begin and end in milliseconds."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One result: when the audio it waited for was sent (seconds, monotonic clock), and the delay in milliseconds."""

    sent: float
    ms: float


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What came of one stream."""

    partials: tuple[Latency, ...]
    finals: tuple[Latency, ...]
    transcript: tuple[Utterance, ...]
    drain_ms: float | None
    """From the last audio, which ends the stream, to the last result."""
    problem: str
    """Empty if the stream ended as it should."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Of some values; all but the count are None when there are none."""

    count: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


def quantiles(values: Iterable[float]) -> Quantiles:
    """Quantiles of the values themselves, rounded to 0.01."""
    array = np.array(list(values), np.float64)
    if not len(array):
        return Quantiles(0)
    p50, p95, p99 = np.quantile(array, (0.5, 0.95, 0.99))
    numbers = [round(float(number), 2) for number in (array.mean(), p50, p95, p99, array.max())]
    return Quantiles(len(array), *numbers)


def sent_at(sent: Sequence[float], frame_ms: int, audio_ms: int) -> float:
    """When the frame that holds the last sample before ``audio_ms`` went out."""
    return sent[min(max(0, -(-audio_ms // frame_ms) - 1), len(sent) - 1)]


def read_log(log: StreamLog) -> StreamResult:
    """Parse everything a stream received."""
    partials: list[Latency] = []
    finals: list[Latency] = []
    transcript: list[Utterance] = []
    drain_ms: float | None = None
    problem = log.problem
    for arrival, text in log.received:
        match parse(text):
            case Partial(audio_ms=audio_ms):
                partials.append(_latency(log, arrival, audio_ms))
            case Final() as final:
                transcript.append((final.text, tuple((w.text, w.start_ms, w.end_ms) for w in final.words)))
                if final.reason in MODEL_ENDS:
                    finals.append(_latency(log, arrival, final.audio_ms))
            case Error(code=code, message=message):
                problem = f"{code}: {message}"
            case Done():
                drain_ms = 1000 * (arrival - log.sent[-1])
    if drain_ms is None and not problem:
        problem = "closed before the end"
    return StreamResult(tuple(partials), tuple(finals), tuple(transcript), drain_ms, problem)


def lag_growth_ms(latencies: Sequence[Latency], begin: float, end: float) -> float | None:
    """Median latency of audio sent in the last quarter of a window, less that of the first quarter, in milliseconds.

    A server that does not keep up falls behind further and further, so this grows with the window; for one that does
    it is noise around 0. None if either quarter has no result.
    """
    quarter = (end - begin) / 4
    first = [latency.ms for latency in latencies if begin <= latency.sent < begin + quarter]
    last = [latency.ms for latency in latencies if end - quarter <= latency.sent < end]
    return round(float(np.median(last) - np.median(first)), 1) if first and last else None


def _latency(log: StreamLog, arrival: float, audio_ms: int) -> Latency:
    sent = sent_at(log.sent, log.frame_ms, audio_ms)
    return Latency(sent, 1000 * (arrival - sent))
