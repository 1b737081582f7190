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
from functools import partial

from parakeet_live.engine.backend import Emission, StepInput
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.endpointing import Endpointer, Turn
from parakeet_live.session.events import (
    Cancelled,
    Done,
    Eou,
    Event,
    Final,
    Partial,
    Reason,
    Resumed,
    SpeechStarted,
)
from parakeet_live.session.intake import Flush, Intake
from parakeet_live.session.utterance import Utterance
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import VoiceModel, VoiceMonitor
from parakeet_models.bundle import ModelInfo
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32

FLUSH_SECONDS = 1.28
"""Most silence appended by a flush while waiting for the model's end of utterance: four times the published p90
of its delay (280 ms)."""
SETTLE_SECONDS = 0.64
"""Silence after which a flush is over if it brought no token and there is no end of utterance to wait for."""
SPEECH_OVER_MS = 1_000
"""Audio without a voice after which a voice counts as a new beginning of speech."""


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
        self._vocabulary = vocabulary
        self._rate = manifest.mel.sample_rate
        self._frame_samples = SUBSAMPLING_FACTOR * manifest.mel.hop_length
        self._look_ahead = manifest.mel.window_length // 2
        self._voice = VoiceMonitor(voice) if voice is not None else None
        self._intake = Intake(manifest.mel, manifest.step_sizes[0], self._voice)
        self.endpointing = endpointing
        """The numbers asked for last."""
        self._endpointer = Endpointer(endpointing, self._milliseconds(self._frame_samples))
        self._frame = 0
        """Encoder frames applied."""
        self._step = 0
        """Encoder frames of the step that is out, 0 if none is."""
        self._applied = 0
        """Client samples whose step has been applied."""
        self._restart = False
        self._utterance = Utterance(vocabulary)
        self._reported = ""
        """Text of the utterance's last partial."""
        self._speech_frame: int | None = None
        """The last frame at which speech was heard, once its beginning has been reported."""
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
        return self._intake.received - self._applied

    @property
    def backlog_ms(self) -> int:
        """The same in milliseconds."""
        return self._milliseconds(self.backlog_samples)

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
        if not self._utterance.empty:
            self._index += 1
        self._forget_utterance()
        events: list[Event] = [
            self._final(self._frame - 1, Reason.FINALIZE) for _ in range(self._intake.cancel())
        ]
        self._applied = self._intake.taken if not self._step else self._applied
        return [*events, Cancelled(self._milliseconds(self._intake.received))]

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
            self._adopt_config(frame)
            flushing = self._flushing(frame)
            for emission in emitted:
                events += self._token(emission, frame)
            events += self._partial(frame)
            if flushing and any(emission.token in self._ends for emission in emitted):
                events += self._finish_flush()
                break
            if not flushing:
                events += self._frame_over(frame)
        if self._intake.flush is not None and self._flushed_enough:
            events += self._finish_flush()
        self._forget()
        return events + self._settle()

    @property
    def _ends(self) -> tuple[int, int | None]:
        return self._vocabulary.eou, self._vocabulary.eob

    def _adopt_config(self, frame: int) -> None:
        configs = self._intake.configs
        while configs and configs[0][0] < self._frame_end(frame):
            self._endpointer.config = configs.popleft()[1]

    def _flushing(self, frame: int) -> bool:
        """True if ``frame`` has heard silence of the flush that runs: nothing but the flush ends the utterance then."""
        return self._intake.flush is not None and self._frame_end(frame) > self._intake.flush_start

    @property
    def _flushed_enough(self) -> bool:
        """True if the flush need not wait for the model's end of utterance any longer."""
        silence = self._intake.flush_silence
        if silence >= FLUSH_SECONDS * self._rate:
            return True
        waiting = self._endpointer.open and (
            self._endpointer.end_frame is None or self._flushing(self._endpointer.last_frame)
        )
        return not waiting and silence >= SETTLE_SECONDS * self._rate

    def _token(self, emission: Emission, frame: int) -> list[Event]:
        """One token of the model."""
        if self._intake.flush is Flush.CANCEL:
            return []
        at = self._frame_ms(frame + 1)
        if emission.token in self._ends:
            events: list[Event] = [*self._partial(frame)]
            if self._utterance.empty:
                self._forget_utterance()
                return events
            decision = self._endpointer.end_token(frame, backchannel=emission.token == self._vocabulary.eob)
            if decision is Turn.EAGER_END:
                self._utterance.end_word()
                events.append(Eou(self._index, at))
            elif isinstance(decision, Reason):
                events.append(self._final(frame, decision))
            return events
        events = self._speech(frame)
        decision = self._endpointer.token(frame, self._utterance.starts_word(emission.token))
        if isinstance(decision, Reason):
            events.append(self._final(frame - 1, decision))
            self._endpointer.token(frame, starts_word=True)
        elif decision is Turn.RESUMED:
            events.append(Resumed(self._index, at))
        self._utterance.add(emission.token, frame, emission.probability)
        return events

    def _frame_over(self, frame: int) -> list[Event]:
        """What silence decides at the end of ``frame``."""
        config = self._endpointer.config
        position = self._frame_end(frame)
        listening = self._voice is not None and config.vad
        reason = self._endpointer.frame_over(
            frame, partial(self._since_voice_ms, position) if listening else None
        )
        events: list[Event] = []
        if reason is not None and not self._utterance.empty:
            events.append(self._final(frame, reason))
        elif reason is not None:
            self._forget_utterance()
        waiting = listening and config.speech_started and not self._endpointer.open
        if waiting and self._since_voice_ms(position) <= self._endpointer.frame_ms:
            events += self._speech(frame)
        return events

    def _since_voice_ms(self, position: int) -> int:
        assert self._voice is not None
        return self._voice.since_voice_ms(position)

    def _speech(self, frame: int) -> list[Event]:
        """Speech is heard at ``frame``: report it if it is a beginning."""
        if not self._endpointer.config.speech_started:
            return []
        before, self._speech_frame = self._speech_frame, frame
        silent = before is None or self._milliseconds((frame - before) * self._frame_samples) > SPEECH_OVER_MS
        return [SpeechStarted(self._frame_ms(frame + 1))] if silent and not self._endpointer.open else []

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
            events.append(self._final(last, Reason.FINALIZE))
        elif not self._utterance.empty:
            end = Reason.END if self._endpointer.end_frame is None else Reason.EOU
            events.append(self._final(last, Reason.NO_AUDIO if flush is Flush.NO_AUDIO else end))
        self._forget_utterance()
        if flush is Flush.END:
            self._done = True
            events.append(Done(self._milliseconds(self._intake.received), self._spoken))
        return events

    def _partial(self, frame: int) -> list[Event]:
        """A partial as of ``frame`` if the text has grown since the last one."""
        text = self._utterance.text
        if text == self._reported:
            return []
        self._reported = text
        return [
            Partial(
                self._index, text, self._utterance.words(self._frame_ms, frame), self._frame_ms(frame + 1)
            )
        ]

    def _final(self, frame: int, reason: Reason) -> Final:
        end = self._endpointer.end_frame
        final = Final(
            self._index,
            self._utterance.text,
            self._utterance.words(self._frame_ms, frame),
            self._frame_ms(frame + 1),
            reason,
            None if end is None else self._frame_ms(end + 1),
        )
        self._index += 1
        self._spoken += not self._utterance.empty
        self._forget_utterance()
        return final

    def _forget_utterance(self) -> None:
        self._endpointer.close()
        self._utterance = Utterance(self._vocabulary)
        self._reported = ""

    def _forget(self) -> None:
        """Let go of what no later decision or time needs."""
        position = self._frame * self._frame_samples
        if self._utterance.empty:
            self._intake.timeline.forget_before(position)
        if self._voice is not None:
            self._voice.forget_before(position)

    def _frame_end(self, frame: int) -> int:
        """Model position up to which an encoder frame has heard: the middle of its last mel frame and half a window."""
        return frame * self._frame_samples + self._look_ahead

    def _frame_ms(self, frame: int) -> int:
        """Client time at which an encoder frame begins, which is where the frame before it ends."""
        client = self._intake.timeline.client_position(max(0, self._frame_end(frame - 1)))
        return self._milliseconds(client)

    def _milliseconds(self, samples: int) -> int:
        return samples * 1000 // self._rate
