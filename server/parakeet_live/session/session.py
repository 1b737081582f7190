"""One stream: samples in, steps out to an engine, emissions back in, events out.

A plain state machine without sockets, threads or clocks. Time is audio time. Drive it so::

    session.push(samples)                       # or finalize(), end()
    while frames := session.ready_frames:
        for event in session.apply(backend.step([session.next_step(slot, frames)])[0]):
            ...

Events do not depend on how the audio was cut, nor on the size of the steps: mel frames are computed in fixed blocks,
every event belongs to an encoder frame, and its times are functions of that frame alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from itertools import groupby, takewhile

import numpy as np

from parakeet_live.audio.mel import StreamingMel
from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.events import Done, Event, Final, Partial, Reason
from parakeet_live.session.timeline import Timeline
from parakeet_live.session.utterance import Utterance
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import ModelInfo
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32

FLUSH_SECONDS = 1.28
"""Most silence appended by a flush while waiting for the model's end of utterance: four times the published p90
of its delay (280 ms)."""


class _Mark(Enum):
    """A command, queued between the samples it came between."""

    FINALIZE = auto()
    END = auto()


class Session:
    """The state of one stream. One owner; not thread-safe."""

    def __init__(self, manifest: ModelInfo, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._mel_parameters = manifest.mel
        self._rate = manifest.mel.sample_rate
        self._frame_samples = SUBSAMPLING_FACTOR * manifest.mel.hop_length
        self._look_ahead = manifest.mel.window_length // 2
        self._live_frames = manifest.step_sizes[0]
        self._mel = StreamingMel(manifest.mel)
        self._last_mel: Float32 | None = None
        self._queue: deque[Float32 | _Mark] = deque()
        self._queued = 0
        """Samples in the queue before its first mark."""
        self._marks = 0
        """Marks in the queue."""
        self._timeline = Timeline()
        self._received = 0
        self._heard = 0
        """Client samples handed to the front end."""
        self._frame = 0
        """Encoder frames applied."""
        self._step = 0
        """Encoder frames of the step that is out, 0 if none is."""
        self._flush: _Mark | None = None
        self._flush_silence = 0
        self._flushed = 0
        """Client samples that a flush has covered."""
        self._flush_start = 0
        """Model position at which the flush's silence begins."""
        self._restart = False
        self._utterance = Utterance(vocabulary)
        self._reported = ""
        """Text of the utterance's last partial."""
        self._index = 0
        self._spoken = 0
        self._ended = False
        self._done = False

    @property
    def done(self) -> bool:
        """True once :class:`Done` was reported."""
        return self._done

    @property
    def backlog_samples(self) -> int:
        """Samples received whose step has not been applied yet."""
        return max(0, self._received - self._timeline.client_position(self._frame * self._frame_samples))

    @property
    def backlog_ms(self) -> int:
        """The same in milliseconds."""
        return self._milliseconds(self.backlog_samples)

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] mono in [-1, 1] at the model's rate. Samples after :meth:`end` are dropped."""
        if self._ended or len(samples) == 0:
            return
        self._received += len(samples)
        self._queue.append(samples)
        if not self._marks:
            self._queued += len(samples)

    def finalize(self) -> None:
        """Flush what was pushed so far: exactly one Final with reason FINALIZE follows, perhaps without text."""
        if not self._ended:
            self._mark(_Mark.FINALIZE)

    def end(self) -> None:
        """No more audio: flush, then :class:`Done`. A second call does nothing."""
        if not self._ended:
            self._ended = True
            self._mark(_Mark.END)

    @property
    def ready_frames(self) -> int:
        """Encoder frames that the next step may have at most, a multiple of the live step; 0 if none is ready."""
        if self._done or self._step:
            return 0
        mel_frames = self._mel.available_after(self._queued)
        if self._last_mel is None:
            mel_frames += SUBSAMPLING_FACTOR - 1
        frames = mel_frames // SUBSAMPLING_FACTOR // self._live_frames * self._live_frames
        if frames == 0 and (self._flush is not None or self._marks):
            return self._live_frames
        return frames

    def next_step(self, slot: int, frames: int) -> StepInput:
        """The next step, of ``frames`` encoder frames: one of the model's step sizes, at most :attr:`ready_frames`.

        Its emissions must be applied before the next step is asked for.
        """
        if not 0 < frames <= self.ready_frames:
            raise ValueError(f"a step of {frames} frames is not ready; {self.ready_frames} are")
        first = self._last_mel is None
        wanted = SUBSAMPLING_FACTOR * frames - (SUBSAMPLING_FACTOR - 1 if first else 0)
        self._gather(wanted)
        new = self._mel.read(wanted)
        if self._last_mel is None:
            head = np.zeros((SUBSAMPLING_FACTOR, self._mel_parameters.bins), np.float32)
        else:
            head = self._last_mel
        mel = np.concatenate([head, new])
        self._last_mel = new[-1:]
        self._step = frames
        restart, self._restart = self._restart, False
        return StepInput(slot, mel, begin=SUBSAMPLING_FACTOR if first else 0, end=len(mel), restart=restart)

    def apply(self, emissions: Sequence[Emission]) -> list[Event]:
        """Take the emissions of the last step; returns the events in order."""
        events: list[Event] = []
        base, self._frame, self._step = self._frame, self._frame + self._step, 0
        if self._nothing_new:
            emissions = ()
        for frame, group in groupby(emissions, key=lambda emission: base + emission.frame):
            for emission in group:
                if emission.token in (self._vocabulary.eou, self._vocabulary.eob):
                    events += self._partial(frame)
                    if self._flush is not None and self._frame_end(frame) > self._flush_start:
                        return events + self._finish_flush(Reason.EOU)
                    if not self._utterance.empty:
                        eou = emission.token == self._vocabulary.eou
                        events.append(self._final(frame, Reason.EOU if eou else Reason.BACKCHANNEL))
                else:
                    self._utterance.add(emission.token, frame, emission.probability)
            events += self._partial(frame)
        if self._flush is not None and self._flush_silence >= FLUSH_SECONDS * self._rate:
            events += self._finish_flush(Reason.END)
        if self._utterance.empty:
            self._timeline.forget_before(self._frame * self._frame_samples)
        return events

    @property
    def _nothing_new(self) -> bool:
        """True while a flush runs on silence alone: no audio came since the flush before it, so no words can."""
        return self._flush is not None and self._utterance.empty and self._heard == self._flushed

    def _mark(self, mark: _Mark) -> None:
        self._queue.append(mark)
        self._marks += 1

    def _gather(self, mel_frames: int) -> None:
        """Feed the front end until ``mel_frames`` can be read."""
        while (missing := self._mel.missing(mel_frames)) > 0:
            if self._flush is not None:
                self._timeline.insert(self._mel.pushed, missing)
                self._mel.push(np.zeros(missing, np.float32))
                self._flush_silence += missing
            else:
                self._take(self._queue.popleft(), missing)

    def _take(self, item: Float32 | _Mark, missing: int) -> None:
        if isinstance(item, _Mark):
            self._flush = item
            self._flush_silence = 0
            self._flush_start = self._mel.pushed
            self._marks -= 1
            ahead = takewhile(lambda queued: not isinstance(queued, _Mark), self._queue)
            self._queued = sum(len(samples) for samples in ahead if not isinstance(samples, _Mark))
            return
        if len(item) > missing:
            self._queue.appendleft(item[missing:])
            item = item[:missing]
        self._queued -= len(item)
        self._heard += len(item)
        self._mel.push(item)

    def _finish_flush(self, reason: Reason) -> list[Event]:
        """Commit what the flush was for; ``reason`` is EOU if the model ended the utterance itself, else END."""
        mark, self._flush = self._flush, None
        self._flushed = self._heard
        events: list[Event] = []
        if mark is _Mark.FINALIZE:
            events.append(self._final(self._frame - 1, Reason.FINALIZE))
        elif not self._utterance.empty:
            events.append(self._final(self._frame - 1, reason))
        if mark is _Mark.END:
            self._done = True
            events.append(Done(self._milliseconds(self._received), self._spoken))
        # Whatever the prediction network holds now belongs to the utterance just committed.
        self._restart = True
        return events

    def _partial(self, frame: int) -> list[Partial]:
        """A partial as of ``frame`` if the text has grown since the last one."""
        text = self._utterance.text
        if text == self._reported:
            return []
        self._reported = text
        return [Partial(self._index, text, self._utterance.words(self._frame_ms), self._frame_ms(frame + 1))]

    def _final(self, frame: int, reason: Reason) -> Final:
        utterance, self._utterance = self._utterance, Utterance(self._vocabulary)
        self._reported = ""
        final = Final(
            self._index, utterance.text, utterance.words(self._frame_ms), self._frame_ms(frame + 1), reason
        )
        self._index += 1
        self._spoken += not utterance.empty
        return final

    def _frame_end(self, frame: int) -> int:
        """Model position up to which an encoder frame has heard: the middle of its last mel frame and half a window."""
        return frame * self._frame_samples + self._look_ahead

    def _frame_ms(self, frame: int) -> int:
        """Client time at which an encoder frame begins, which is where the frame before it ends."""
        return self._milliseconds(self._timeline.client_position(max(0, self._frame_end(frame - 1))))

    def _milliseconds(self, samples: int) -> int:
        return samples * 1000 // self._rate
