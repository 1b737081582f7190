"""One run of training on the clips that are there: in this process, or in several that train together."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.spawn import start_processes

from .alignment import AlignedClips
from .clips import read_recordings
from .evaluate import Recording, read_held_out, read_manifest
from .library import ClipLibrary
from .memory import keep_memory
from .model import TrainingModel, tiny_config
from .parallel import Team
from .schedule import Schedule
from .streams import StreamComposer
from .tokenizer import Tokenizer, train_tokenizer
from .trainer import Trainer, TrainingOptions

MEASURED_KINDS = ("digit", "digit-string", "number-word", "letter", "prompt")
"""Of the recordings to measure on; read speech is beyond the model."""


@dataclass(frozen=True)
class Run:
    """What the command line says about training; `__main__` explains each."""

    real: Path
    work: Path
    recordings: Path | None = None
    seed: int = 1
    hours: float = 8.0
    finish_in: float | None = None

    @property
    def clips(self) -> Path:
        return self.work / "clips"

    @property
    def tokenizer(self) -> Path:
        return self.work / "tokenizer.model"


def train(run: Run, processes: int = 1) -> None:
    """Train until the end of the schedule, or until SIGTERM or Ctrl-C, after which a checkpoint is written.

    Raises `torch.multiprocessing.ProcessRaisedException` or `ProcessExitedException` if one of several processes
    fails; the others are ended then.
    """
    if not run.tokenizer.exists():
        train_tokenizer(run.tokenizer)
    if processes == 1:
        _train(0, run, 1, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        team = start_processes(
            _train_in_team, (run, processes, Path(folder) / "rendezvous"), processes, join=False
        )

        def pass_on(number: int, _: object) -> None:
            for pid in team.pids():
                os.kill(pid, number)

        # Ctrl-C reaches the others by itself.
        with _signals({signal.SIGTERM: pass_on, signal.SIGINT: signal.SIG_IGN}):
            while not team.join():
                pass


def _train_in_team(rank: int, run: Run, processes: int, rendezvous: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    _train(rank, run, processes, rendezvous)


def _train(rank: int, run: Run, processes: int, rendezvous: Path | None) -> None:
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(run.seed + rank)
    team = Team(rank, processes, rendezvous)
    tokenizer = Tokenizer(run.tokenizer)
    recorded = AlignedClips().clips(read_recordings(run.real / "manifest.jsonl"), run.clips / "real.sounds")
    library = ClipLibrary(recorded, run.clips)
    recordings: list[Recording] = []
    if team.leads:
        for source, seconds in library.seconds.items():
            logging.info("%s: %d clips, %.1f min", source, library.counts[source], seconds / 60)
        recordings = read_held_out(run.clips)
        if run.recordings:
            recordings += read_manifest(run.recordings, MEASURED_KINDS)
    trainer = Trainer(
        TrainingModel(tiny_config(tokenizer.size)),
        tokenizer,
        run.tokenizer,
        StreamComposer(library, run.seed + rank),
        run.work,
        TrainingOptions(seed=run.seed, schedule=Schedule(end=60 * run.hours)),
        recordings,
        team,
    )

    def stop(_number: int, _frame: object) -> None:
        trainer.stop()

    with _signals({signal.SIGTERM: stop, signal.SIGINT: stop}):
        trainer.run(run.finish_in)


@contextmanager
def _signals(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Handle signals this way for a while."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
