"""When an utterance ends: a pure state machine in audio time, fed with encoder frames in order.

The model's end-of-utterance token is only an *eager* end. The commit waits until enough audio has passed since the
last token; a token before that resumes the utterance. Where the model says nothing, the time since the last token
alone decides. The voice detector can only put a commit off, and only for a limited time, so that neither noise nor
music keeps an utterance open for ever. Nothing here depends on how many frames came at once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.events import Reason

LISTEN_FROM_MS = 960
"""The voice detector costs as much as a small recogniser: it is asked when a silence is long enough to commit, and at
every frame from so much audio after the last token on, because it listens back no further than a second."""
VOICE_LAG_MS = 60
"""A voice must have been over for nearly as long as the silence since the last token: less by this, because a token
mostly comes before the end of its sound."""
LEAST_QUIET_MS = 256
"""The same for short silences: the token of a word comes after the beginning of its sound."""
WORD_GRACE_MS = 2_000
"""An utterance of the greatest length is cut where the next word begins; this much later between any two tokens."""


class Turn(Enum):
    """What happens to an utterance that goes on."""

    EAGER_END = auto()
    RESUMED = auto()


class Endpointer:
    """The state of one stream's current utterance. A returned Reason is a commit: the caller closes the utterance."""

    def __init__(self, config: EndpointingConfig, frame_ms: int) -> None:
        """``frame_ms``: audio per encoder frame."""
        self.config = config
        self.frame_ms = frame_ms
        self._first: int | None = None
        self._last = 0
        self._end: int | None = None

    @property
    def open(self) -> bool:
        """True from an utterance's first token to its commit."""
        return self._first is not None

    @property
    def end_frame(self) -> int | None:
        """Frame of the end token, if one came and no other token since."""
        return self._end

    @property
    def last_frame(self) -> int:
        """Frame of the last token."""
        return self._last

    def token(self, frame: int, starts_word: bool) -> Turn | Reason | None:
        """An ordinary token on ``frame``. A Reason commits what came before it: close, and give the token again."""
        if self._first is None:
            self._first = self._last = frame
            return None
        over = (frame - self._first) * self.frame_ms - self.config.max_utterance_ms
        if over >= WORD_GRACE_MS or (over >= 0 and starts_word):
            return Reason.MAX_LENGTH
        resumed, self._last, self._end = self._end is not None, frame, None
        return Turn.RESUMED if resumed else None

    def end_token(self, frame: int, backchannel: bool) -> Turn | Reason | None:
        """An end-of-utterance token, or one of backchannel: such an acknowledgement is complete, it never goes on."""
        if self._first is None or self._end is not None:
            return None
        self._end = frame
        return Reason.BACKCHANNEL if backchannel else Turn.EAGER_END

    def frame_over(self, frame: int, since_voice_ms: Callable[[], int] | None) -> Reason | None:
        """``frame`` and its tokens are complete. ``since_voice_ms``: audio since a voice; None: nobody listens."""
        if self._first is None:
            return None
        silence = (frame - self._last) * self.frame_ms
        wanted, hold = self.config.eou_silence_ms, self.config.eou_hold_ms
        if self._end is None:
            wanted, hold = max(wanted, self.config.silence_ms), self.config.silence_hold_ms
        if silence < min(LISTEN_FROM_MS, wanted):
            return None
        quiet = max(LEAST_QUIET_MS, wanted - VOICE_LAG_MS)
        heard = since_voice_ms is not None and since_voice_ms() < quiet
        if silence < wanted or (heard and silence < wanted + hold):
            return None
        if self._end is not None:
            return Reason.EOU
        return Reason.SILENCE if heard or since_voice_ms is None else Reason.VAD

    def close(self) -> None:
        """The utterance is over, for whatever reason."""
        self._first = self._end = None
