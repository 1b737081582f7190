"""Sums up clip results by kind, by speaker and overall, and turns them into plain data for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from parakeet_live.evaluation.endpoints import End
from parakeet_live.evaluation.runner import ClipResult, Padding
from parakeet_live.evaluation.words import WordCounts, total
from parakeet_live.session.events import Final


@dataclass(frozen=True, slots=True)
class Delays:
    """Percentiles of end-of-utterance delays in milliseconds; ``None`` where no end was found."""

    p50: float | None
    p90: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Ends:
    """One view of the ends of a set of clips."""

    missed: int
    """Clips whose end did not come."""
    early: int
    """Clips with an end before their speech was over."""
    delay_ms: Delays
    """After the clip's last sample."""
    delay_from_speech_ms: Delays
    """After the last sound at speech level."""


@dataclass(frozen=True, slots=True)
class Group:
    """Figures over a set of clips."""

    name: str
    clips: int
    words: WordCounts
    eager: Ends
    """The model's own ends of utterance."""
    final: Ends
    """The finals that commit them, whatever their reason."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Cost of the whole run."""

    audio_seconds: float
    wall_seconds: float
    cpu_seconds: float

    @property
    def times_real_time(self) -> float:
        """Seconds of audio for each second of wall time."""
        return self.audio_seconds / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def cpu_times_real_time(self) -> float:
        """Seconds of audio for each second of CPU time: the figure for one core."""
        return self.audio_seconds / self.cpu_seconds if self.cpu_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """What was evaluated."""

    name: str
    bytes: int
    """Size of all files of the bundle."""
    load_seconds: float
    """Wall time to verify the bundle and to make it ready to run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything one evaluation has to say."""

    model: Model
    padding: Padding
    overall: Group
    kinds: list[Group]
    speakers: list[Group]
    """One group for each pair of kind and speaker, named ``kind / speaker``."""
    speed: Speed


def summarise(results: Sequence[ClipResult], model: Model, padding: Padding) -> Summary:
    """Figures over ``results``, which must not be empty."""
    return Summary(
        model=model,
        padding=padding,
        overall=_group("all", results),
        kinds=_by(results, lambda result: result.clip.kind),
        speakers=_by(results, lambda result: f"{result.clip.kind} / {result.clip.speaker}"),
        speed=Speed(
            audio_seconds=sum(result.audio_ms for result in results) / 1000,
            wall_seconds=sum(result.wall_seconds for result in results),
            cpu_seconds=sum(result.cpu_seconds for result in results),
        ),
    )


def summary_data(summary: Summary) -> dict[str, object]:
    """The summary as plain data for JSON; rates are fractions, times are in the unit their name ends with."""
    return {
        "model": asdict(summary.model),
        "padding_ms": summary.padding.milliseconds,
        "padding_noise_dbfs": summary.padding.noise_dbfs,
        "overall": _group_data(summary.overall),
        "kinds": [_group_data(group) for group in summary.kinds],
        "speakers": [_group_data(group) for group in summary.speakers],
        "speed": {
            **asdict(summary.speed),
            "times_real_time": summary.speed.times_real_time,
            "cpu_times_real_time": summary.speed.cpu_times_real_time,
        },
    }


def clip_data(result: ClipResult) -> dict[str, object]:
    """One clip as plain data for JSON."""
    return {
        "id": result.clip.id,
        "kind": result.clip.kind,
        "speaker": result.clip.speaker,
        "reference": result.reference,
        "transcript": result.transcript,
        **_words_data(result.words),
        **asdict(result.end),
        "clip_ms": result.clip_ms,
        "speech_end_ms": result.speech_end_ms,
        "finals": [
            {
                "text": item.event.text,
                "reason": item.event.reason.value,
                "audio_ms": item.event.audio_ms,
                "heard_ms": item.heard_ms,
                "live": item.live,
            }
            for item in result.heard
            if isinstance(item.event, Final)
        ],
    }


def _by(results: Sequence[ClipResult], key: Callable[[ClipResult], str]) -> list[Group]:
    names = sorted({key(result) for result in results})
    return [_group(name, [result for result in results if key(result) == name]) for name in names]


def _group(name: str, results: Sequence[ClipResult]) -> Group:
    return Group(
        name=name,
        clips=len(results),
        words=total(result.words for result in results),
        eager=_ends([result.end.eager for result in results]),
        final=_ends([result.end.final for result in results]),
    )


def _ends(ends: Sequence[End]) -> Ends:
    return Ends(
        missed=sum(end.missed for end in ends),
        early=sum(end.early for end in ends),
        delay_ms=_delays(end.delay_ms for end in ends),
        delay_from_speech_ms=_delays(end.delay_from_speech_ms for end in ends),
    )


def _delays(values: Iterable[int | None]) -> Delays:
    found = [value for value in values if value is not None]
    if not found:
        return Delays(None, None, None)
    p50, p90, p95 = (round(float(value), 1) for value in np.percentile(found, [50, 90, 95]))
    return Delays(p50, p90, p95)


def _words_data(words: WordCounts) -> dict[str, object]:
    return {
        **asdict(words),
        "errors": words.errors,
        "reference_words": words.reference_words,
        "wer": words.wer,
    }


def _group_data(group: Group) -> dict[str, object]:
    return {
        "name": group.name,
        "clips": group.clips,
        **_words_data(group.words),
        "eager": _ends_data(group.eager, group.clips),
        "final": _ends_data(group.final, group.clips),
    }


def _ends_data(ends: Ends, clips: int) -> dict[str, object]:
    return {**asdict(ends), "missed_rate": ends.missed / clips, "early_rate": ends.early / clips}
