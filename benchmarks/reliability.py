"""``python -m benchmarks.reliability MANIFEST``: what the confidence of a word is worth.

Words of the finals are aligned with the reference and sorted by confidence: of those said to be right with 80 %, 80 %
should be. ``--out-of-scope KIND`` (may be repeated) names kinds of recordings whose words are not all in the model's
vocabulary: they get a row of their own, and their confidence should be lower.

Prints a table; ``--plot FILE`` draws it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jiwer
import numpy as np
import soundfile
import typer

from parakeet_live.cli.bundles import choose_bundle, start_transcriber
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.evaluation.normalise import normalise
from parakeet_live.session.events import Final

BINS = 10
RATE = 16_000
TAIL_S = 1.2


@dataclass(slots=True)
class Heard:
    """Confidence of every word of one group of recordings, and whether it was right."""

    confidence: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)


def judged_words(reference: str, words: list[tuple[str, float]]) -> list[tuple[float, bool]]:
    """(confidence, right) of every word, aligned with the reference by the fewest changes."""
    if not words:
        return []
    if not reference:
        return [(confidence, False) for _, confidence in words]
    right = [False] * len(words)
    for chunk in jiwer.process_words(reference, " ".join(text for text, _ in words)).alignments[0]:
        if chunk.type == "equal":
            right[chunk.hyp_start_idx : chunk.hyp_end_idx] = [True] * (
                chunk.hyp_end_idx - chunk.hyp_start_idx
            )
    return [(confidence, ok) for (_, confidence), ok in zip(words, right, strict=True)]


def table(heard: Heard) -> list[tuple[float, float, float, int]]:
    """(upper edge, mean confidence, share right, words) of every bin that has words."""
    confidence, right = np.array(heard.confidence), np.array(heard.right, float)
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    rows = []
    for bin_ in range(BINS):
        inside = place == bin_
        if inside.any():
            edge = (bin_ + 1) / BINS
            rows.append(
                (edge, float(confidence[inside].mean()), float(right[inside].mean()), int(inside.sum()))
            )
    return rows


def draw(rows: list[tuple[float, float, float, int]], file: Path) -> None:
    """The reliability diagram: share right against confidence, the size of a dot the number of words."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4, 4))
    axes.plot([0, 1], [0, 1], color="grey", lw=0.8)
    axes.scatter([r[1] for r in rows], [r[2] for r in rows], s=[10 + r[3] ** 0.5 * 6 for r in rows])
    axes.set(xlabel="confidence", ylabel="share of words that are right", xlim=(0, 1), ylim=(0, 1))
    figure.tight_layout()
    figure.savefig(file)


def main(
    manifest: Path,
    model: Annotated[Path, typer.Option()] = Path("tiny-en"),
    out_of_scope: Annotated[list[str] | None, typer.Option()] = None,
    plot: Annotated[Path | None, typer.Option()] = None,
) -> None:
    """Reliability of word confidences."""
    transcriber = start_transcriber(choose_bundle(model), BackendChoice.AUTO)
    groups: dict[str, Heard] = defaultdict(Heard)
    for line in manifest.read_text().splitlines():
        clip: dict[str, Any] = json.loads(line)
        samples, _ = soundfile.read(manifest.parent / clip["audio"], dtype="float32")
        audio = np.concatenate([samples, np.zeros(int(TAIL_S * RATE), np.float32)])
        finals = [event for event in transcriber.stream(iter([audio])) if isinstance(event, Final)]
        words = [(normalise(w.text, clip["kind"]), w.confidence) for final in finals for w in final.words]
        # A word that is written as two, or as none, has no place of its own in the alignment.
        single = [(text, confidence) for text, confidence in words if text and " " not in text]
        group = groups["out of scope" if clip["kind"] in (out_of_scope or []) else "in scope"]
        for confidence, right in judged_words(normalise(clip["text"], clip["kind"]), single):
            group.confidence.append(confidence)
            group.right.append(right)
    for name, heard in sorted(groups.items()):
        typer.echo(f"{name}: {len(heard.right)} words, {100 * np.mean(heard.right):.1f} % right, "
                   f"median confidence {np.median(heard.confidence):.2f}")  # fmt: skip
    rows = table(groups["in scope"])
    typer.echo("in scope: up to, mean confidence, share right, words")
    for edge, confidence, share, count in rows:
        typer.echo(f"{edge:5.1f} {confidence:7.2f} {share:7.2f} {count:6}")
    if plot:
        draw(rows, plot)


if __name__ == "__main__":
    typer.run(main)
