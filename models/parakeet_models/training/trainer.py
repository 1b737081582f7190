"""The training loop: losses, optimiser, averaged weights, evaluation, checkpoints that resume."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from parakeet_models.network import ParakeetNetwork

from .batches import Batch, BatchSource
from .evaluate import Recording, evaluate, false_words, noise_recordings
from .export import write_checkpoint
from .loss import transducer_loss
from .model import TrainingModel
from .parallel import Team
from .schedule import Schedule
from .sounds import IGNORED, QUIET
from .streams import StreamComposer
from .tokenizer import SPECIALS, Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingOptions:
    """One training run."""

    seed: int = 1
    batch_seconds: float = 48.0
    fast_emit: float = 0.001
    average_decay: float = 0.9997
    """Of the averaged weights, which forget within 3,000 steps (and within a ninth of all while there are fewer). With
    0.998 they followed the last five minutes, whose errors scatter by several points."""
    clip_norm: float = 2.0
    weight_decay: float = 0.01
    checkpoint_every_s: float = 300.0
    evaluate_every_s: float = 1200.0
    schedule: Schedule = field(default_factory=Schedule)
    """Its times are CPU time of all processes together, evaluation not counted: wall time would let a busy machine cut
    the warm start short."""


@dataclass(frozen=True)
class Losses:
    """Per label, except `frame`, per frame, and `sound`, per slot of a frame; `accuracy` is over the frames that carry
    a word, `sound_accuracy` over the slots that carry a sound."""

    total: Tensor
    transducer: float
    ctc: float
    frame: float
    sound: float
    accuracy: float
    sound_accuracy: float


def _accuracy(logits: Tensor, targets: Tensor, counted: Tensor) -> float:
    right = (logits.argmax(-1) == targets) & counted
    return float(right.sum() / counted.sum().clamp(min=1))


def compute_losses(
    model: TrainingModel, batch: Batch, schedule: Schedule, minutes: float, fast_emit: float
) -> Losses:
    """Forward pass and the loss of the current phase."""
    with torch.autocast("cpu", torch.bfloat16):
        encoded, lengths, sound_logits = model.encode(batch)
        frame_logits = model.frame_head(encoded).float()
        logits = model.transducer_logits(encoded, batch) if schedule.uses_transducer(minutes) else None
    frame = F.cross_entropy(
        frame_logits.flatten(0, 1), batch.frame_labels.flatten(), ignore_index=IGNORED, label_smoothing=0.05
    )
    sound_loss = F.cross_entropy(
        sound_logits.float().flatten(0, 2), batch.sounds.flatten(), ignore_index=IGNORED
    )
    accuracy = _accuracy(
        frame_logits,
        batch.frame_labels,
        (batch.frame_labels != IGNORED) & (batch.frame_labels < model.blank - SPECIALS),
    )
    sound_accuracy = _accuracy(
        sound_logits, batch.sounds, (batch.sounds != IGNORED) & (batch.sounds != QUIET)
    )
    if logits is None:
        total = frame + schedule.sound_weight(minutes) * sound_loss
        return Losses(
            total, 0.0, 0.0, float(frame.detach()), float(sound_loss.detach()), accuracy, sound_accuracy
        )
    count = batch.label_lengths.sum().clamp(min=1)
    rows = transducer_loss(
        logits,
        batch.node_labels,
        batch.lattice_frames,
        batch.lattice_labels,
        model.blank,
        fast_emit,
        batch.node_bias,
    )
    transducer = rows.sum() / count
    ctc = (
        F.ctc_loss(
            frame_logits.log_softmax(-1).transpose(0, 1),
            batch.labels,
            lengths,
            batch.label_lengths,
            blank=model.blank,
            reduction="none",
            zero_infinity=True,
        ).sum()
        / count
    )
    total = (
        transducer
        + schedule.ctc_weight * ctc
        + schedule.frame_weight(minutes) * frame
        + schedule.sound_weight(minutes) * sound_loss
    )
    return Losses(
        total,
        float(transducer.detach()),
        float(ctc.detach()),
        float(frame.detach()),
        float(sound_loss.detach()),
        accuracy,
        sound_accuracy,
    )


class AveragedWeights:
    """Exponential moving average of the parameters: decodes clearly better than the last step's."""

    def __init__(self, model: TrainingModel, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.values = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: TrainingModel) -> None:
        """Take in the current weights; young averages forget faster."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, parameter in model.named_parameters():
            self.values[name].lerp_(parameter, 1 - decay)


class Trainer:
    """Trains one model in `folder`; call `run` again after an interruption and it goes on.

    `recordings` are measured on now and then; they have no say in what is kept. In a team every process has a trainer,
    whose composer must have another seed; the leading one reports, measures and saves.
    """

    def __init__(
        self,
        model: TrainingModel,
        tokenizer: Tokenizer,
        tokenizer_path: Path,
        composer: StreamComposer,
        folder: Path,
        options: TrainingOptions,
        recordings: Sequence[Recording] = (),
        team: Team | None = None,
    ) -> None:
        self.model = model
        self.team = team or Team()
        self.tokenizer = tokenizer
        self.tokenizer_path = tokenizer_path
        self.composer = composer
        self.folder = folder
        self.options = options
        self.recordings = recordings
        self.source = BatchSource(composer, tokenizer, options.batch_seconds)
        self.optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=options.schedule.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=options.weight_decay,
            fused=True,
        )
        self.step = 0
        self.elapsed_s = 0.0
        self.audio_s = 0.0
        self.average = AveragedWeights(model, options.average_decay)
        self._mark = time.process_time()
        self._asked_to_stop = False
        self._stops = 0.0
        """How many of the team have been asked to stop."""

    def stop(self) -> None:
        """Let `run` save and return after the step it is at; may be called from a signal handler."""
        self._asked_to_stop = True

    @property
    def minutes(self) -> float:
        """CPU minutes trained so far, by all processes together."""
        return self.elapsed_s / 60

    def train_step(self, batch: Batch) -> Losses:
        """One optimiser step, together with the team."""
        schedule = self.options.schedule
        losses = compute_losses(self.model, batch, schedule, self.minutes, self.options.fast_emit)
        for group in self.optimiser.param_groups:
            group["lr"] = schedule.rate(self.minutes, self.step)
        self.optimiser.zero_grad()
        losses.total.backward()  # type: ignore[no-untyped-call]
        now = time.process_time()
        elapsed_s, audio_s, self._stops = self.team.share(
            self.model.parameters(), (now - self._mark, batch.seconds, float(self._asked_to_stop))
        )
        self._mark = now
        self.elapsed_s += elapsed_s
        self.audio_s += audio_s
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self.optimiser.step()
        if self.team.leads:
            self.average.update(self.model)
        self.step += 1
        return losses

    def run(self, finish_in: float | None = None) -> None:
        """Train until the time is used up, then evaluate and export.

        `finish_in`: end after so many CPU minutes from now, all of them decay. That happens in the folder `finish`, so
        that the checkpoint from before can still go on for longer another day.
        """
        self._resume()
        if finish_in is not None:
            self.folder = self.folder / "finish"
            self.options = replace(
                self.options,
                schedule=replace(self.options.schedule, end=self.minutes + finish_in, decay=finish_in),
            )
        batches = iter(self.source)
        checkpointed = evaluated = self.elapsed_s
        window: list[Losses] = []
        self._mark = time.process_time()
        # Asked to stop, a process goes on until all of the team know: the others would wait for it for ever.
        (self._stops,) = self.team.share((), (float(self._asked_to_stop),))
        while self.minutes < self.options.schedule.end and not self._stops:
            self.source.difficulty = self.options.schedule.difficulty(self.minutes)
            window.append(self.train_step(next(batches)))
            if len(window) == 50:
                self._report(window)
                window = []
            if self.elapsed_s - checkpointed > self.options.checkpoint_every_s:
                checkpointed = self.elapsed_s
                measure = self.elapsed_s - evaluated > self.options.evaluate_every_s
                evaluated = self.elapsed_s if measure else evaluated
                self._checkpoint(measure=measure)
                self._mark = time.process_time()
        self._checkpoint(measure=not self._stops)
        self.team.leave()

    def _report(self, window: Sequence[Losses]) -> None:
        if not self.team.leads:
            return

        def mean(name: str) -> float:
            return float(np.mean([getattr(losses, name) for losses in window]))

        log.info(
            "step %d  %.1f min  rnnt %.3f  ctc %.3f  frame %.3f  sound %.3f  right %.3f, sounds %.3f"
            "  audio %.1f h  %.0f x",
            self.step, self.minutes, mean("transducer"), mean("ctc"), mean("frame"),
            mean("sound"), mean("accuracy"), mean("sound_accuracy"),
            self.audio_s / 3600, self.audio_s / max(self.elapsed_s, 1e-3),
        )  # fmt: skip

    def averaged_network(self) -> ParakeetNetwork:
        """A plain network with the averaged weights."""
        last = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.model.load_state_dict(self.average.values, strict=False)
        state = self.model.plain_state()
        self.model.load_state_dict(last, strict=False)
        network = ParakeetNetwork(self.model.network.config)
        network.load_state_dict(state)
        return network.eval()

    def _checkpoint(self, *, measure: bool) -> None:
        """Save; export the averaged weights and, if asked to, measure them.

        The last weights are the result, never the best by some recordings: those recordings would then have taken
        part in the training, and their figures would mean little.
        """
        if added := self.composer.refresh():
            log.info("%d new shards", added)
        if not self.team.leads:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        scores: dict[str, Any] = {
            "steps": self.step,
            "minutes": round(self.minutes, 1),
            "audio_hours_heard": round(self.audio_s / 3600, 1),
        }
        if self.options.schedule.uses_transducer(self.minutes):
            network = self.averaged_network()
            if measure:
                scores["recordings"] = evaluate(network, self.tokenizer, self.recordings)
                scores["noise"] = false_words(network, self.tokenizer, noise_recordings(seed=7))
                log.info("evaluation after %d steps: %s", self.step, json.dumps(scores))
            write_checkpoint(
                self.folder / "export", network.state_dict(), network.config, self.tokenizer_path, scores
            )
        state = {
            "model": self.model.state_dict(),
            "average": self.average.values,
            "updates": self.average.updates,
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "elapsed_s": self.elapsed_s,
            "audio_s": self.audio_s,
        }
        unfinished = self.folder / "checkpoint.pt.part"
        torch.save(state, unfinished)
        os.replace(unfinished, self.folder / "checkpoint.pt")

    def _resume(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            batch = next(iter(self.source))
            self.model.initialise(batch.mel)
            self.team.follow(self.model)
            self.average = AveragedWeights(self.model, self.options.average_decay)
            return
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.average.values, self.average.updates = state["average"], state["updates"]
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.elapsed_s = state["step"], state["elapsed_s"]
        self.audio_s = state["audio_s"]
        # Not the first batches again, and others than the team's.
        self.composer.reseed(self.options.seed + self.step * self.team.size + self.team.rank)
        log.info("resumed at step %d, %.1f min", self.step, self.elapsed_s / 60)
