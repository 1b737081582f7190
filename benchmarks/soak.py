"""Do word times drift in a stream of hours? One recording, said again and again at known places, with silence between.

    python -m benchmarks.soak tests/data/audio/fsddstr_jackson_10.flac --hours 2

The stream goes through a real session and network in the largest steps, faster than it could be spoken. The places
lie on all phases of a live step in turn. A repetition is compared with the first one on its phase: nothing but what
happened between can make a difference. Times are compared less the place of the repetition. Exit code 1 if a word is
another or a time more than an encoder frame off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from parakeet_live.audio.files import RATE, read_blocks
from parakeet_live.cli.bundles import BackendOption, ModelOption, choose_bundle, start_transcriber
from parakeet_live.cli.console import progress_bar
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.session.events import Final, Word
from parakeet_models.mel import Float32

FRAME_MS = 80
PHASES = 16
"""Different places in a live step of 160 ms, 10 ms apart."""


def places(hours: float, every_seconds: float) -> list[int]:
    """Sample numbers at which the recording begins: each in the next phase of a step, all in one stream."""
    step = RATE * 160 // 1000
    period = round(every_seconds * RATE) // step * step
    count = int(hours * 3600 * RATE) // period
    return [index * period + index % PHASES * (step // PHASES) for index in range(count)]


def blocks(recording: Float32, starts: Sequence[int], length: int) -> Iterator[Float32]:
    """The whole stream of ``length`` samples, a repetition at a time."""
    ends = [*starts[1:], length]
    yield np.zeros(starts[0], np.float32)
    for start, end in zip(starts, ends, strict=True):
        yield np.concatenate([recording, np.zeros(end - start - len(recording), np.float32)])


def repetition_words(finals: Sequence[Final], starts: Sequence[int]) -> list[list[Word]]:
    """The words of each repetition: those that begin before the next one."""
    words = [word for final in finals for word in final.words]
    borders = np.array(starts[1:]) * 1000 / RATE
    found: list[list[Word]] = [[] for _ in starts]
    for word in words:
        found[int(np.searchsorted(borders, word.start_ms, side="right"))].append(word)
    return found


def offsets(words: Sequence[Word], start: int) -> list[float]:
    """Begins and ends of the words in milliseconds of the recording."""
    return [time - start * 1000 / RATE for word in words for time in (word.start_ms, word.end_ms)]


def main(
    recording: Annotated[Path, typer.Argument(help="A short recording of speech that the model knows.")],
    hours: Annotated[float, typer.Option(help="Length of the stream.")] = 2.0,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="From one repetition to the next.")] = 20.0,
    model: ModelOption = None,
    backend: BackendOption = BackendChoice.AUTO,
) -> None:
    """Stream, compare, print."""
    samples = np.concatenate(list(read_blocks(recording)))
    if len(samples) > (every - 5) * RATE:
        raise typer.BadParameter(f"the recording must be 5 s shorter than --every {every:g}")
    starts, length = places(hours, every), int(hours * 3600 * RATE)
    bundle = choose_bundle(model)
    transcriber = start_transcriber(bundle, backend, bundle.manifest.step_sizes[-1])
    finals = []
    with progress_bar() as progress:
        task = progress.add_task("streaming", total=hours * 3600)
        for event in transcriber.stream(blocks(samples, starts, length)):
            if isinstance(event, Final):
                finals.append(event)
                progress.update(task, completed=event.audio_ms / 1000)
    found = repetition_words(finals, starts)
    texts = [" ".join(word.text for word in words) for words in found]
    times = [offsets(words, start) for words, start in zip(found, starts, strict=True)]
    print(f"{len(starts)} repetitions in {hours:g} h, {len(finals)} finals; the first one: {texts[0]!r}")
    later = range(PHASES, len(starts))
    different = sum(texts[index] != texts[index % PHASES] for index in later)
    shifts = [
        abs(time - first)
        for index in later
        if texts[index] == texts[index % PHASES]
        for time, first in zip(times[index], times[index % PHASES], strict=True)
    ]
    print(f"other words than the first one on the same phase: {different} of {len(later)}")
    if not shifts:
        raise typer.Exit(1)
    print(f"times off by at most {max(shifts):g} ms, {len(shifts)} compared")
    raise typer.Exit(int(different > 0 or max(shifts) > FRAME_MS))


if __name__ == "__main__":
    typer.run(main)
