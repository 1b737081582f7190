"""``parakeet-live eval``: word errors and ends of utterance on recordings with known text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parakeet_live.audio.files import AudioFileError
from parakeet_live.cli.bundles import BackendOption, ModelOption, choose_bundle, start_transcriber
from parakeet_live.cli.console import STDOUT, fail, progress_bar, write_json
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.session.endpoint_config import Preset

if TYPE_CHECKING:
    from parakeet_live.evaluation.manifest import Clip
    from parakeet_live.evaluation.runner import ClipResult

BENCHMARK = "Ends of utterance"
"""Heading of the options that belong to --endpointing."""
TURNS = 100
"""Utterances of each pause length and condition in the benchmark of ends of utterance."""


def evaluate(
    manifest: Annotated[
        Path,
        typer.Argument(
            metavar="MANIFEST",
            help="JSON Lines, one recording a line: id, audio (path relative to it), text, speaker, kind.",
        ),
    ],
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Also write every figure to FILE; - writes them to standard output instead of tables.",
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only recordings of this kind; may be repeated."),
    ] = None,
    model: ModelOption = None,
    backend: BackendOption = BackendChoice.AUTO,
    padding_ms: Annotated[
        int,
        typer.Option(min=0, help="Silence streamed after every recording, in milliseconds of audio."),
    ] = 2000,
    noise_dbfs: Annotated[
        float | None,
        typer.Option(
            max=0.0,
            help="Fill the padding with white noise of this level (dB of full scale) "
            "instead of digital silence.",
        ),
    ] = None,
    details: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one line of JSON for each recording to FILE."),
    ] = None,
    endpointing: Annotated[
        bool,
        typer.Option(
            "--endpointing",
            help="Measure ends of utterance instead, on streams composed from the recordings, with pauses, noise, "
            "music and a telephone line (docs/endpointing-benchmark.md).",
            rich_help_panel=BENCHMARK,
        ),
    ] = False,
    presets: Annotated[
        list[Preset] | None,
        typer.Option(
            "--preset", help="Only this preset; may be repeated. Default: all.", rich_help_panel=BENCHMARK
        ),
    ] = None,
    turns: Annotated[
        int,
        typer.Option(min=1, help="Utterances of each pause length and condition.", rich_help_panel=BENCHMARK),
    ] = TURNS,
    seed: Annotated[int, typer.Option(min=0, help="Of the composed streams.", rich_help_panel=BENCHMARK)] = 0,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few utterances, to see that it works.", rich_help_panel=BENCHMARK),
    ] = False,
) -> None:
    """Measure word error rate and ends of utterance.

    Every recording is streamed through a real session, followed by silence. A missed end is a recording whose
    text is not closed by the model within the silence; an early end is a recording that is closed before its
    speech is over. Delays count the audio that had been sent when the final came.
    """
    from parakeet_live.cli.endpointing import run_benchmark
    from parakeet_live.evaluation.report import print_report
    from parakeet_live.evaluation.runner import Padding, run_clip
    from parakeet_live.evaluation.summary import Model, clip_data, summarise, summary_data

    clips = _clips(manifest, kinds)
    if endpointing:
        run_benchmark(
            clips,
            choose_bundle(model),
            backend=backend,
            presets=list(dict.fromkeys(presets or Preset)),
            turns=None if quick else turns,
            seed=seed,
            json_file=json_file,
        )
        return
    started = time.perf_counter()
    bundle = choose_bundle(model)
    transcriber = start_transcriber(bundle, backend)
    loaded = Model(
        name=bundle.manifest.name,
        bytes=bundle.bytes,
        load_seconds=time.perf_counter() - started,
    )
    padding = Padding(padding_ms, noise_dbfs)
    results: list[ClipResult] = []
    try:
        with progress_bar() as progress:
            for clip in progress.track(clips, description="evaluating"):
                results.append(run_clip(transcriber, clip, padding))
    except AudioFileError as error:
        fail(str(error))

    summary = summarise(results, loaded, padding)
    if details:
        lines = "".join(json.dumps(clip_data(result), ensure_ascii=False) + "\n" for result in results)
        try:
            details.write_text(lines, encoding="utf-8")
        except OSError as error:
            fail(f"cannot write {details}: {error.strerror}")
    if json_file != STDOUT:
        print_report(summary)
    if json_file:
        write_json(summary_data(summary), json_file)


def _clips(manifest: Path, kinds: list[str] | None) -> list[Clip]:
    from parakeet_live.evaluation.manifest import ManifestError, read_manifest

    try:
        clips = read_manifest(manifest)
    except ManifestError as error:
        fail(str(error))
    if kinds:
        present = sorted({clip.kind for clip in clips})
        if unknown := sorted(set(kinds) - set(present)):
            fail(f"no recording of kind {', '.join(unknown)} in {manifest}; there are: {', '.join(present)}")
        clips = [clip for clip in clips if clip.kind in kinds]
    return clips
