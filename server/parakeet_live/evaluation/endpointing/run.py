"""Runs every stream under every preset through real sessions, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache

from parakeet_live.engine.backend import Backend
from parakeet_live.engine.together import Track, run_together
from parakeet_live.evaluation.endpointing.compose import Stream
from parakeet_live.evaluation.endpointing.judge import StreamResult, judge
from parakeet_live.evaluation.endpointing.summary import PresetSummary, summarise
from parakeet_live.session.endpoint_config import PRESETS, Preset
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import SileroModel
from parakeet_models.layouts import AnyBundle
from parakeet_models.mel import Float32


def run_streams(
    bundle: AnyBundle,
    backend: Backend,
    streams: Sequence[Stream],
    presets: Sequence[Preset],
    on_progress: Callable[[float], None] = lambda seconds: None,
) -> list[PresetSummary]:
    """A summary for each preset. ``backend`` runs ``bundle``; ``on_progress`` is told of seconds of audio just done."""
    vocabulary, voice = Vocabulary.load(bundle), SileroModel()

    @lru_cache(maxsize=1)  # the presets of a stream are run one right after the other
    def samples(number: int) -> Float32:
        return streams[number].samples()

    def track(number: int, preset: Preset) -> Track:
        return Track(
            streams[number].length,
            lambda: (Session(bundle.manifest, vocabulary, PRESETS[preset], voice), samples(number)),
        )

    jobs = [(number, preset) for number in range(len(streams)) for preset in presets]
    results: dict[tuple[int, Preset], StreamResult] = {}
    tracks = [track(number, preset) for number, preset in jobs]
    for job, heard in run_together(bundle.manifest, backend, tracks, on_progress):
        number, preset = jobs[job]
        results[number, preset] = judge(streams[number], heard)
    return [
        summarise(
            preset, asdict(PRESETS[preset]), [results[number, preset] for number in range(len(streams))]
        )
        for preset in presets
    ]
