"""``parakeet-live bench``: what a server carries, at which cost and latency."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from parakeet_live.audio.files import AudioFileError
from parakeet_live.cli.bundles import BackendOption, ModelOption, check_backend, choose_bundle
from parakeet_live.cli.console import fail, notes, write_json
from parakeet_live.demo import RECORDING
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.web.process import ServerStartError

if TYPE_CHECKING:
    from parakeet_live.bench.campaign import Campaign

TRACKS = 8
"""Different tracks; further streams play them again, at other moments."""
MAX_TRIALS = 12
"""Runs of one search."""


def bench(
    streams: Annotated[
        int, typer.Option(min=1, help="Concurrent streams; with --find-max, where the search begins.")
    ] = 8,
    sweep: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="One run for each of these numbers of streams.")
    ] = None,
    find_max: Annotated[
        bool,
        typer.Option("--find-max", help="Search the largest number of streams that the server holds."),
    ] = False,
    limit_ms: Annotated[
        float,
        typer.Option(min=1, help="p95 of the partial latency below which --find-max counts a run as held."),
    ] = 500.0,
    seconds: Annotated[float, typer.Option(min=1, help="Length of the measured window.")] = 20.0,
    warm_up: Annotated[float, typer.Option(min=0, help="Seconds under load before the window.")] = 3.0,
    frame_ms: Annotated[int, typer.Option(min=10, max=1000, help="Audio in one message.")] = 100,
    audio: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Recording to stream; may be repeated. Default: the one of the demo."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the tracks and of the start times.")] = 0,
    model: ModelOption = None,
    backend: BackendOption = BackendChoice.AUTO,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Measure the server at this ws:// URL instead of starting one. "
            "Its processor time and memory are not known then.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="PARAKEET_KEY", help="API key, if the server of --url needs one.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write every figure to FILE.")
    ] = None,
) -> None:
    """Load a server with many live streams and measure it.

    Recorded speech goes through real WebSockets at the pace of speech, with random start times. Every transcript
    is compared with the one of the same audio alone. docs/performance.md says what each figure means.
    """
    try:
        import psutil  # noqa: F401
    except ImportError:
        fail("bench needs a few more packages: pip install 'parakeet-live[bench]'")
    from parakeet_live.bench.campaign import Campaign
    from parakeet_live.bench.report import conclusions, document, tables
    from parakeet_live.bench.run import Load, ReferenceFailedError
    from parakeet_live.bench.tracks import make_tracks, read_recordings

    if find_max and sweep:
        fail("choose one of --find-max and --sweep")
    if url and model:
        fail("choose one of --url and --model: a running server has its model already")
    if url and not url.startswith(("ws://", "wss://")):
        fail(f"{url} is no WebSocket URL: it begins with ws:// or wss://")
    counts = _counts(sweep) if sweep else [streams]
    files = audio or [RECORDING]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    load = Load(seconds=seconds, warm_up=warm_up, seed=seed)
    bundle = None if url else choose_bundle(model)
    if bundle:
        check_backend(bundle, backend)
    max_streams = None
    try:
        tracks = make_tracks(
            read_recordings(files),
            count=TRACKS if find_max else min(TRACKS, max(counts)),
            seconds=load.track_seconds,
            frame_ms=frame_ms,
            seed=seed,
        )
        campaign = Campaign(tracks, load, url=url, key=key, model=model, backend=backend)
        notes.print(f"transcribing {len(tracks)} tracks of {load.track_seconds:.0f} s one by one")
        campaign.transcribe_alone()
        if find_max:
            max_streams = _find_max(campaign, streams, limit_ms)
        else:
            for count in counts:
                notes.print(f"running {count} streams")
                campaign.run(count)
    except (AudioFileError, ServerStartError, ReferenceFailedError) as error:
        fail(str(error))

    result = document(
        campaign.runs,
        started=started,
        model=bundle.manifest if bundle else None,
        settings={
            "url": url,
            "seconds": seconds,
            "warm_up": warm_up,
            "frame_ms": frame_ms,
            "audio": [file.name for file in files],
            "tracks": len(tracks),
            "seed": seed,
            "limit_ms": limit_ms if find_max else None,
        },
        max_streams=max_streams,
    )
    console = Console(highlight=False, soft_wrap=True)
    shown = [run for run in campaign.runs if run.streams == max_streams] if max_streams else campaign.runs
    for table in tables(shown, console.width):
        console.print(table)
    for line in conclusions(result):
        console.print(line)
    if json_file:
        write_json(result, json_file)


def _counts(sweep: str) -> list[int]:
    """The numbers of ``--sweep``."""
    try:
        counts = [int(number) for number in sweep.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        fail(f"--sweep takes whole numbers from 1, separated by commas, such as 1,8,16; got {sweep}")
    return counts


def _find_max(campaign: Campaign, start: int, limit_ms: float) -> int:
    """Search, and say after each trial how it went."""
    from parakeet_live.bench.search import search_largest, shortcomings

    def holds(count: int) -> bool:
        run = campaign.run(count)
        reasons = shortcomings(run, limit_ms)
        verdict = f"too many: {', '.join(reasons)}" if reasons else "held"
        p95 = run.partial_latency_ms.p95
        latency = "" if p95 is None else f", p95 partial latency {p95:.0f} ms"
        notes.print(f"{count} streams{latency}: {verdict}")
        return not reasons

    return search_largest(holds, start, MAX_TRIALS)
