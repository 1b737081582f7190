"""One stream: samples in, steps out to an engine, emissions back in, events out.

A plain state machine without sockets, threads or clocks. Time is audio time. Drive it so::

    session.push(samples)                       # or events of finalize(), no_audio(), cancel(), end()
    while frames := session.ready_frames:
        for event in session.apply(backend.step([session.next_step(slot, frames)])[0]):
            ...

Events do not depend on how the audio was cut, nor on the size of the steps: mel frames are computed in fixed blocks,
every decision is made for an encoder frame, and its times are functions of that frame alone.

The prediction network restarts where the model emits an end token (the decoder does that) and after a flush. Other
commits leave it alone: to the model the speech goes on, and so its next word comes out as if there had been no cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.clock import FrameClock
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.events import Cancelled, Done, Event, Reason
from parakeet_live.session.flush import Flush, heard_enough
from parakeet_live.session.intake import Intake
from parakeet_live.session.turns import Turns
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import VoiceModel, VoiceMonitor
from parakeet_models.bundle import ModelInfo
from parakeet_models.mel import Float32


class Session:
    """The state of one stream. One owner; not thread-safe."""

    def __init__(
        self,
        manifest: ModelInfo,
        vocabulary: Vocabulary,
        endpointing: EndpointingConfig = DEFAULT,
        voice: VoiceModel | None = None,
    ) -> None:
        """Without a ``voice`` model nobody listens for one, whatever ``endpointing`` says."""
        self._voice = VoiceMonitor(voice) if voice is not None else None
        self._intake = Intake(manifest.mel, manifest.step_sizes[0], self._voice)
        self._clock = FrameClock(manifest.mel, self._intake.timeline)
        self._turns = Turns(vocabulary, endpointing, self._clock, self._voice)
        self.endpointing = endpointing
        """The numbers asked for last."""
        self._frame = 0
        """Encoder frames applied."""
        self._step = 0
        """Encoder frames of the step that is out, 0 if none is."""
        self._applied = 0
        """Client samples whose step has been applied."""
        self._restart = False
        self._ended = False
        self._done = False

    @property
    def done(self) -> bool:
        """True once :class:`Done` was reported."""
        return self._done

    @property
    def backlog_samples(self) -> int:
        """Samples received whose step has not been applied yet."""
        return self._intake.received - self._applied

    @property
    def backlog_ms(self) -> int:
        """The same in milliseconds."""
        return self._clock.milliseconds(self.backlog_samples)

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] mono in [-1, 1] at the model's rate. Samples after :meth:`end` are dropped."""
        if not self._ended and len(samples):
            self._intake.push(samples)

    def configure(self, endpointing: EndpointingConfig) -> None:
        """Decide by these numbers from the audio pushed next on."""
        if not self._ended:
            self.endpointing = endpointing
            self._intake.configure(endpointing)

    def finalize(self) -> list[Event]:
        """Flush what was pushed so far: exactly one Final with reason FINALIZE follows, perhaps without text."""
        return self._request(Flush.FINALIZE)

    def no_audio(self) -> list[Event]:
        """The client has been silent for long: flush what was pushed so far; a Final only if there is text."""
        return self._request(Flush.NO_AUDIO)

    def end(self) -> list[Event]:
        """No more audio: flush, then :class:`Done`. A second call does nothing."""
        events = self._request(Flush.END)
        self._ended = True
        return events

    def cancel(self) -> list[Event]:
        """Drop the current utterance and everything pushed so far; what is pushed next begins a new utterance.

        Finalize requests that were not answered yet are answered without text.
        """
        if self._ended:
            return []
        self._turns.drop()
        events: list[Event] = [
            self._turns.commit(self._frame - 1, Reason.FINALIZE) for _ in range(self._intake.cancel())
        ]
        self._applied = self._intake.taken if not self._step else self._applied
        return [*events, Cancelled(self._clock.milliseconds(self._intake.received))]

    @property
    def ready_frames(self) -> int:
        """Encoder frames that the next step may have at most, a multiple of the live step; 0 if none is ready."""
        return 0 if self._done or self._step else self._intake.ready_frames

    def next_step(self, slot: int, frames: int) -> StepInput:
        """The next step, of ``frames`` encoder frames: one of the model's step sizes, at most :attr:`ready_frames`.

        Its emissions must be applied before the next step is asked for.
        """
        if not 0 < frames <= self.ready_frames:
            raise ValueError(f"a step of {frames} frames is not ready; {self.ready_frames} are")
        mel, begin = self._intake.read(frames)
        self._step = frames
        restart, self._restart = self._restart, False
        return StepInput(slot, mel, begin=begin, end=len(mel), restart=restart)

    def apply(self, emissions: Sequence[Emission]) -> list[Event]:
        """Take the emissions of the last step; returns the events in order."""
        base, frames, self._step = self._frame, self._step, 0
        self._frame, self._applied = base + frames, self._intake.taken
        events: list[Event] = []
        tokens: list[list[Emission]] = [[] for _ in range(frames)]
        for emission in emissions:
            tokens[emission.frame].append(emission)
        for frame, emitted in enumerate(tokens, base):
            events += self._apply_frame(frame, emitted)
            if self._flushing(frame) and any(self._turns.is_end(emission.token) for emission in emitted):
                events += self._finish_flush()
                break
        if self._intake.flush is not None and self._flushed_enough:
            events += self._finish_flush()
        self._forget()
        return events + self._settle()

    def _apply_frame(self, frame: int, emitted: Sequence[Emission]) -> list[Event]:
        """One encoder frame with its tokens."""
        while (config := self._intake.config_before(self._clock.heard(frame))) is not None:
            self._turns.configure(config)
        events: list[Event] = []
        if self._intake.flush is not Flush.CANCEL:
            for emission in emitted:
                events += self._turns.token(emission, frame)
        events += self._turns.partial(frame)
        if not self._flushing(frame):
            events += self._turns.frame_over(frame)
        return events

    def _flushing(self, frame: int) -> bool:
        """True if ``frame`` has heard silence of the flush that runs: nothing but the flush ends the utterance then."""
        return self._intake.flush is not None and self._clock.heard(frame) > self._intake.flush_start

    @property
    def _flushed_enough(self) -> bool:
        """True if the flush need not wait for the model's end of utterance any longer."""
        last = self._turns.last_token_frame
        waiting = last is not None and (not self._turns.ended or self._flushing(last))
        return heard_enough(self._clock.milliseconds(self._intake.flush_silence), waiting)

    def _request(self, flush: Flush) -> list[Event]:
        if self._ended:
            return []
        self._intake.request(flush)
        return self._settle()

    def _settle(self) -> list[Event]:
        """Answer the requests that need no audio: the model has nothing left to say."""
        events: list[Event] = []
        while not self._step and not self._done and (flush := self._intake.next_flush()):
            events += self._answer(flush)
        return events

    def _finish_flush(self) -> list[Event]:
        flush = self._intake.flush
        assert flush is not None
        self._intake.finish_flush()
        # Whatever the prediction network holds now belongs to what was just flushed.
        self._restart = True
        return self._answer(flush)

    def _answer(self, flush: Flush) -> list[Event]:
        """Commit what a flush was for."""
        events: list[Event] = []
        last = self._frame - 1
        if flush is Flush.FINALIZE:
            events.append(self._turns.commit(last, Reason.FINALIZE))
        elif not self._turns.empty:
            end = Reason.EOU if self._turns.ended else Reason.END
            events.append(self._turns.commit(last, Reason.NO_AUDIO if flush is Flush.NO_AUDIO else end))
        self._turns.forget()
        if flush is Flush.END:
            self._done = True
            events.append(Done(self._clock.milliseconds(self._intake.received), self._turns.spoken))
        return events

    def _forget(self) -> None:
        """Let go of what no later decision or time needs."""
        position = self._frame * self._clock.frame_samples
        if self._turns.last_token_frame is None:
            self._intake.timeline.forget_before(position)
        if self._voice is not None:
            self._voice.forget_before(position)
