"""``parakeet-live transcribe``: recordings to text, without a server."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import Progress, TaskID

from parakeet_live.audio.files import RATE, AudioFileError, describe, read_blocks
from parakeet_live.cli.bundles import BackendOption, ModelOption, choose_bundle, start_transcriber
from parakeet_live.cli.console import fail, progress_bar, report_error
from parakeet_live.cli.turn_options import (
    EndpointingOption,
    EouHoldOption,
    EouSilenceOption,
    FormatOption,
    MaxUtteranceOption,
    SilenceHoldOption,
    SilenceOption,
    VadOption,
    endpointing_config,
)
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.formatting import FinalFormatter, UnknownFormatterError, make_final_formatter, split_names
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.events import Done, Final
from parakeet_live.transcripts import to_json, to_srt, to_text, to_vtt

if TYPE_CHECKING:
    from parakeet_live.engine.offline import Transcriber

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said in one recording."""

    source: str
    audio_ms: int
    finals: Sequence[Final]
    formatted: Sequence[Final] | None
    """The finals in readable form, where that is asked for."""

    @property
    def shown(self) -> Sequence[Final]:
        """What people read."""
        return self.finals if self.formatted is None else self.formatted


FORMATS: dict[str, Callable[[Transcript], str]] = {
    "txt": lambda transcript: to_text(transcript.shown),
    "json": lambda transcript: to_json(
        transcript.finals,
        source=transcript.source,
        audio_ms=transcript.audio_ms,
        formatted=transcript.formatted,
    ),
    "srt": lambda transcript: to_srt(transcript.shown),
    "vtt": lambda transcript: to_vtt(transcript.shown),
}
"""Formatter for each file name ending."""


def transcribe(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Recordings: WAV, FLAC, Ogg, Opus, MP3 ..., any sample rate, any number of channels. "
            "- reads one recording from standard input.",
        ),
    ],
    as_text: Annotated[
        bool, typer.Option("--text", help="Plain text, one line an utterance (the default).")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for each file, with word times and confidence.")
    ] = False,
    as_srt: Annotated[bool, typer.Option("--srt", help="SubRip subtitles.")] = False,
    as_vtt: Annotated[bool, typer.Option("--vtt", help="WebVTT subtitles.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write FILE's result to DIR/FILE.txt (or .json, .srt, .vtt) instead of standard output.",
        ),
    ] = None,
    formatting: FormatOption = "",
    endpointing: EndpointingOption = None,
    eou_silence_ms: EouSilenceOption = None,
    eou_hold_ms: EouHoldOption = None,
    silence_ms: SilenceOption = None,
    silence_hold_ms: SilenceHoldOption = None,
    max_utterance_ms: MaxUtteranceOption = None,
    vad: VadOption = None,
    model: ModelOption = None,
    backend: BackendOption = BackendChoice.AUTO,
) -> None:
    """Turn recordings into text.

    The exit code is 1 when any file failed; the others are transcribed all the same.
    """
    ending = _chosen_format(txt=as_text, json=as_json, srt=as_srt, vtt=as_vtt)
    targets = _targets(files, ending, output)
    config = endpointing_config(
        endpointing=endpointing,
        eou_silence_ms=eou_silence_ms,
        eou_hold_ms=eou_hold_ms,
        silence_ms=silence_ms,
        silence_hold_ms=silence_hold_ms,
        max_utterance_ms=max_utterance_ms,
        vad=vad,
    )
    bundle = choose_bundle(model)
    language = bundle.manifest.languages[0]
    try:
        make_final_formatter(split_names(formatting), language)
    except UnknownFormatterError as error:
        fail(f"--format {formatting}: {error}")
    # Nobody waits for partials here: the largest steps are the fastest and give the same text.
    transcriber = start_transcriber(bundle, backend, bundle.manifest.step_sizes[-1])
    failed = False
    for index, name in enumerate(files):
        try:
            transcript = _transcribe(
                transcriber, name, config, make_final_formatter(split_names(formatting), language)
            )
        except AudioFileError as error:
            report_error(str(error))
            failed = True
            continue
        result = FORMATS[ending](transcript)
        if targets:
            try:
                targets[index].write_text(result, encoding="utf-8")
            except OSError as error:
                fail(f"cannot write {targets[index]}: {error.strerror}")
        else:
            title = f"{name}:\n" if ending == "txt" and len(files) > 1 else ""
            sys.stdout.write(title + result)
            sys.stdout.flush()
    if failed:
        raise typer.Exit(1)


def _chosen_format(**wanted: bool) -> str:
    """The file name ending of the one format asked for."""
    chosen = [ending for ending, is_wanted in wanted.items() if is_wanted]
    if len(chosen) > 1:
        fail("choose one of --text, --json, --srt and --vtt")
    return chosen[0] if chosen else "txt"


def _targets(files: Sequence[str], ending: str, output: Path | None) -> list[Path]:
    """Result files in the order of ``files``; empty when results go to standard output."""
    if output is None:
        if ending in ("srt", "vtt") and len(files) > 1:
            fail(f"several .{ending} files cannot share standard output: add --output DIR")
        return []
    targets = [output / f"{'stdin' if name == STDIN else Path(name).stem}.{ending}" for name in files]
    doubles = sorted({str(target) for target in targets if targets.count(target) > 1})
    if doubles:
        fail(f"several files would be written to {doubles[0]}: transcribe them one by one or rename them")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot make the directory {output}: {error.strerror}")
    return targets


def _transcribe(
    transcriber: Transcriber, name: str, endpointing: EndpointingConfig, formatter: FinalFormatter | None
) -> Transcript:
    with _as_file(name) as path, progress_bar() as progress:
        task = progress.add_task("standard input" if name == STDIN else name, total=describe(path).seconds)
        finals: list[Final] = []
        audio_ms = 0
        for event in transcriber.stream(_counted(read_blocks(path), progress, task), endpointing):
            if isinstance(event, Final):
                finals.append(event)
            elif isinstance(event, Done):
                audio_ms = event.audio_ms
        formatted = None if formatter is None else [formatter.format(final) for final in finals]
        return Transcript(name, audio_ms, finals, formatted)


def _counted(
    blocks: Iterator[NDArray[np.float32]], progress: Progress, task: TaskID
) -> Iterator[NDArray[np.float32]]:
    for block in blocks:
        yield block
        progress.advance(task, len(block) / RATE)


@contextmanager
def _as_file(name: str) -> Iterator[Path]:
    """A path to read ``name`` from; standard input is copied first, because audio headers need seeking."""
    if name != STDIN:
        yield Path(name)
        return
    with tempfile.NamedTemporaryFile(prefix="parakeet-live-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        try:
            yield Path(copy.name)
        except AudioFileError as error:
            raise AudioFileError(str(error).replace(copy.name, "standard input")) from error
