"""``parakeet-live eval --endpointing``: the benchmark of ends of utterance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from parakeet_live.audio.files import AudioFileError
from parakeet_live.cli.bundles import start_backend
from parakeet_live.cli.console import STDOUT, fail, notes, progress_bar, write_json
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.evaluation.endpointing.compose import Composer, Stream
from parakeet_live.evaluation.endpointing.material import MaterialError, load_material
from parakeet_live.evaluation.endpointing.report import print_report
from parakeet_live.evaluation.endpointing.run import run_streams
from parakeet_live.evaluation.endpointing.scenes import Plan
from parakeet_live.evaluation.endpointing.summary import PresetSummary, preset_data
from parakeet_live.evaluation.manifest import Clip
from parakeet_live.session.endpoint_config import Preset
from parakeet_models.layouts import AnyBundle

SLOTS = 32
"""Streams at a time. A batch of this size is about as fast as any larger one."""


def run_benchmark(
    clips: Sequence[Clip],
    bundle: AnyBundle,
    *,
    backend: BackendChoice,
    presets: Sequence[Preset],
    turns: int | None,
    seed: int,
    json_file: Path | None,
) -> None:
    """Compose, run, print. ``turns``: utterances of each pause length and condition; None for a quick look."""
    plan = Plan.quick(seed) if turns is None else Plan(turns=turns, seed=seed)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        streams = Composer(load_material(clips)).streams(plan)
    except (MaterialError, AudioFileError) as error:
        fail(str(error))
    engine = start_backend(bundle, backend, SLOTS)
    minutes = sum(stream.milliseconds for stream in streams) / 60_000
    notes.print(f"{len(streams)} streams, {minutes:.0f} minutes of audio, under {len(presets)} presets")
    try:
        with progress_bar() as progress:
            task = progress.add_task("streaming", total=60 * minutes * len(presets))
            summaries = run_streams(
                bundle, engine, streams, presets, on_progress=lambda seconds: progress.advance(task, seconds)
            )
    finally:
        engine.shut_down()
    if json_file != STDOUT:
        print_report(summaries, bundle.manifest.name)
    if json_file:
        write_json(_document(summaries, bundle, streams, plan, started), json_file)


def _document(
    summaries: Sequence[PresetSummary], bundle: AnyBundle, streams: Sequence[Stream], plan: Plan, started: str
) -> dict[str, Any]:
    return {
        "format": 1,
        "started": started,
        "parakeet_live": version("parakeet-live"),
        "model": bundle.manifest.model_dump(mode="json", exclude={"files"}),
        "seed": plan.seed,
        "turns": plan.turns,
        "streams": len(streams),
        "audio_seconds": round(sum(stream.milliseconds for stream in streams) / 1000, 1),
        "presets": [preset_data(summary) for summary in summaries],
    }
