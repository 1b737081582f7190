"""Does a pause cost words? Recordings with a pause made longer step by step, so that the model's end falls everywhere.

    python -m benchmarks.pauses MANIFEST --kind digit-string --preset command

Each recording is cut where it is silent, its middle pause is made 200, 220, ... 600 ms long, and what finals say is
compared with the text: words left out, put in and taken for others, beside those of the recording as it is. The preset
decides how finals cut the words up, and must not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jiwer
import numpy as np
import typer

from parakeet_live.audio.files import RATE, read_blocks
from parakeet_live.cli.bundles import BackendOption, ModelOption, choose_bundle, start_transcriber
from parakeet_live.cli.console import progress_bar
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.engine.offline import Transcriber
from parakeet_live.evaluation.endpointing.material import Recording, cut
from parakeet_live.evaluation.manifest import read_manifest
from parakeet_live.session.endpoint_config import PRESETS, Preset
from parakeet_live.session.events import Final
from parakeet_models.mel import Float32

SILENCE_BEFORE, SILENCE_AFTER = RATE // 2, 3 * RATE


def with_pause(recording: Recording, pause_ms: int | None) -> Float32:
    """float32[n] at 16 kHz: the recording with its middle pause of this length; None leaves it as it is."""
    pauses = list(recording.pauses_ms)
    if pause_ms is not None:
        pauses[len(pauses) // 2] = pause_ms
    speech = sum(phrase.end - phrase.begin for phrase in recording.phrases)
    samples = np.zeros(SILENCE_BEFORE + speech + sum(pauses) * RATE // 1000 + SILENCE_AFTER, np.float32)
    begin = SILENCE_BEFORE
    for phrase, pause in zip(recording.phrases, (*pauses, 0), strict=True):
        at = begin - phrase.begin
        samples[at : at + len(phrase.samples)] += phrase.samples
        begin += phrase.end - phrase.begin + pause * RATE // 1000
    return samples


def heard(transcriber: Transcriber, samples: Float32, preset: Preset) -> tuple[str, int]:
    """Finals joined, and how many there are."""
    events = transcriber.stream([samples], PRESETS[preset])
    texts = [event.text for event in events if isinstance(event, Final)]
    return " ".join(texts), len(texts)


def compare(name: str, texts: Sequence[str], said: Sequence[tuple[str, int]]) -> None:
    """One line of the table."""
    # jiwer takes no empty text; the dash counts as one word taken for another.
    words = jiwer.process_words(list(texts), [text or "-" for text, _ in said])
    print(
        f"{name:>12}  {words.deletions:8} {words.insertions:9} {words.substitutions:13} "
        f"{sum(finals for _, finals in said):7}"
    )


def main(
    manifest: Annotated[Path, typer.Argument(help="Recordings, as for `parakeet-live eval`.")],
    kind: Annotated[list[str] | None, typer.Option(help="Leave out other kinds; may be repeated.")] = None,
    preset: Annotated[Preset, typer.Option(help="When turns end.")] = Preset.COMMAND,
    shortest: Annotated[int, typer.Option(metavar="MS", help="First length of the pause.")] = 200,
    longest: Annotated[int, typer.Option(metavar="MS", help="Last length of the pause.")] = 600,
    step: Annotated[int, typer.Option(metavar="MS", help="From one length to the next.")] = 20,
    every: Annotated[int, typer.Option(metavar="N", help="Take every Nth recording only.")] = 1,
    model: ModelOption = None,
    backend: BackendOption = BackendChoice.AUTO,
) -> None:
    """Pause, listen, print."""
    clips = [clip for clip in read_manifest(manifest) if not kind or clip.kind in kind]
    cuts = [(clip.text, cut(np.concatenate(list(read_blocks(clip.audio))))) for clip in clips]
    usable = [(text, recording) for text, recording in cuts if recording and recording.pauses_ms][::every]
    if not usable:
        raise typer.BadParameter("no recording has a silence to be made longer")
    texts = [text for text, _ in usable]
    bundle = choose_bundle(model)
    transcriber = start_transcriber(bundle, backend, bundle.manifest.step_sizes[-1])
    lengths = [None, *range(shortest, longest + 1, step)]
    print(f"{len(usable)} recordings, {len(' '.join(texts).split())} words")
    print(f"{'pause, ms':>12}  left out    put in     taken for  finals")
    with progress_bar() as progress:
        for length in progress.track(lengths, description="pauses"):
            said = [heard(transcriber, with_pause(recording, length), preset) for _, recording in usable]
            compare("as recorded" if length is None else str(length), texts, said)


if __name__ == "__main__":
    typer.run(main)
