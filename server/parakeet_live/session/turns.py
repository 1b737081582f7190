"""The utterances of one stream, one after the other: tokens and silence in, events out.

Knows nothing of audio, steps or flushes: every call is about one encoder frame, and frames come in order.
"""

from __future__ import annotations

from functools import partial

from parakeet_live.engine.backend import Emission
from parakeet_live.session.clock import FrameClock
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.endpointing import Endpointer, Turn
from parakeet_live.session.events import Eou, Event, Final, Partial, Reason, Resumed, SpeechStarted
from parakeet_live.session.utterance import Utterance
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import VoiceMonitor

SPEECH_OVER_MS = 1_000
"""Audio without a voice after which a voice counts as a new beginning of speech."""


class Turns:
    """Owns the current utterance, its number and its endpointer."""

    def __init__(
        self, vocabulary: Vocabulary, config: EndpointingConfig, clock: FrameClock, voice: VoiceMonitor | None
    ) -> None:
        self._vocabulary = vocabulary
        self._clock = clock
        self._voice = voice
        self._endpointer = Endpointer(config, clock.frame_ms)
        self._utterance = Utterance(vocabulary)
        self._reported = ""
        """Text of the utterance's last partial."""
        self._speech_frame: int | None = None
        """The last frame at which speech was heard, once its beginning has been reported."""
        self._index = 0
        self.spoken = 0
        """Finals with text so far."""

    @property
    def empty(self) -> bool:
        """True while the current utterance has no text."""
        return self._utterance.empty

    @property
    def ended(self) -> bool:
        """True if the model has ended the current utterance and no token came since."""
        return self._endpointer.end_frame is not None

    @property
    def last_token_frame(self) -> int | None:
        """Frame of the current utterance's last token, None before its first."""
        return self._endpointer.last_frame if self._endpointer.open else None

    def configure(self, config: EndpointingConfig) -> None:
        """Decide by these numbers from here on."""
        self._endpointer.config = config

    def is_end(self, token: int) -> bool:
        """True for the tokens with which the model ends an utterance."""
        return token in (self._vocabulary.eou, self._vocabulary.eob)

    def token(self, emission: Emission, frame: int) -> list[Event]:
        """One token of the model."""
        if self.is_end(emission.token):
            return self._end_token(emission.token, frame)
        events = self._speech(frame)
        decision = self._endpointer.token(frame, self._utterance.starts_word(emission.token))
        if isinstance(decision, Reason):
            events.append(self.commit(frame - 1, decision))
            self._endpointer.token(frame, starts_word=True)
        elif decision is Turn.RESUMED:
            events.append(Resumed(self._index, self._clock.begin_ms(frame + 1)))
        self._utterance.add(emission.token, frame, emission.probability)
        return events

    def _end_token(self, token: int, frame: int) -> list[Event]:
        events = self.partial(frame)
        if self._utterance.empty:
            self.forget()
            return events
        decision = self._endpointer.end_token(frame, backchannel=token == self._vocabulary.eob)
        if decision is Turn.EAGER_END:
            self._utterance.end_word()
            events.append(Eou(self._index, self._clock.begin_ms(frame + 1)))
        elif isinstance(decision, Reason):
            events.append(self.commit(frame, decision))
        return events

    def frame_over(self, frame: int) -> list[Event]:
        """What silence decides at the end of ``frame``."""
        config = self._endpointer.config
        position = self._clock.heard(frame)
        voice = self._voice if config.vad else None
        last_token = self._clock.heard(self._endpointer.last_frame)
        reason = self._endpointer.frame_over(
            frame, None if voice is None else partial(voice.since_voice_ms, position, last_token)
        )
        events: list[Event] = []
        if reason is not None and not self._utterance.empty:
            events.append(self.commit(frame, reason))
        elif reason is not None:
            self.forget()
        waiting = config.speech_started and not self._endpointer.open
        if waiting and voice is not None and voice.speaks(position, self._clock.heard(frame - 1)):
            events += self._speech(frame)
        return events

    def partial(self, frame: int) -> list[Event]:
        """A partial as of ``frame`` if the text has grown since the last one."""
        text = self._utterance.text
        if text == self._reported:
            return []
        self._reported = text
        words = self._utterance.words(self._clock.begin_ms, frame)
        return [Partial(self._index, text, words, self._clock.begin_ms(frame + 1))]

    def commit(self, frame: int, reason: Reason) -> Final:
        """End the utterance as of ``frame``, with text or without."""
        end = self._endpointer.end_frame
        final = Final(
            self._index,
            self._utterance.text,
            self._utterance.words(self._clock.begin_ms, frame),
            self._clock.begin_ms(frame + 1),
            reason,
            None if end is None else self._clock.begin_ms(end + 1),
        )
        self._index += 1
        self.spoken += not self._utterance.empty
        self.forget()
        return final

    def drop(self) -> None:
        """The client does not want the current utterance; its number is not given again."""
        if not self._utterance.empty:
            self._index += 1
        self.forget()

    def forget(self) -> None:
        """The next token begins an utterance."""
        self._endpointer.close()
        self._utterance = Utterance(self._vocabulary)
        self._reported = ""

    def _speech(self, frame: int) -> list[Event]:
        """Speech is heard at ``frame``: report it if it is a beginning."""
        if not self._endpointer.config.speech_started:
            return []
        before, self._speech_frame = self._speech_frame, frame
        silent = before is None or (frame - before) * self._clock.frame_ms > SPEECH_OVER_MS
        begins = silent and not self._endpointer.open
        return [SpeechStarted(self._clock.begin_ms(frame + 1))] if begins else []
