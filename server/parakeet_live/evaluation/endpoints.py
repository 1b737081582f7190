"""Judges ends of utterance: was the end found, was it early, how long after the speech did it come?

A clip of the manifest is one utterance followed by silence, so exactly one end is right, after the last word. There
are two views of it: the *eager* end, when the model says so, and the *final*, which commits it. All times are
milliseconds of audio time from the clip's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parakeet_live.engine.together import Heard
from parakeet_live.session.events import Eou, Final, Resumed


@dataclass(frozen=True, slots=True)
class End:
    """One view of a clip's end."""

    missed: bool
    """It did not come within the silence after the clip."""
    early: bool
    """One came before the speech was over, or words came after it."""
    delay_ms: int | None
    """From the clip's last sample; ``None`` where the end was missed or came too soon."""
    delay_from_speech_ms: int | None
    """From the last sound at speech level; the same exceptions."""


@dataclass(frozen=True, slots=True)
class EndOfUtterance:
    """How one clip was ended."""

    eager: End
    """By the model's own end of utterance. Where it is early, the final may still be right."""
    final: End
    """By a final, whatever its reason."""


def judge_end(heard: Sequence[Heard], *, clip_end_ms: int, speech_end_ms: int) -> EndOfUtterance:
    """Judges all events of one clip that was streamed with silence after it."""
    texts = [index for index, item in enumerate(heard) if isinstance(item.event, Final) and item.event.text]
    finals = [(index, heard[index].heard_ms) for index in texts if heard[index].live]
    claims = [
        (index, item.heard_ms)
        for index, item in enumerate(heard)
        if isinstance(item.event, Eou) and item.live
    ]
    resumed = [index for index, item in enumerate(heard) if isinstance(item.event, Resumed)]
    last_text = max(texts, default=-1)
    # A claim stands if no word followed: neither in its own utterance nor in one after it.
    last_word = max([*resumed, *texts[:-1]], default=-1)

    def end(times: Sequence[tuple[int, int]], from_index: int) -> End:
        early = any(index < from_index or time < speech_end_ms for index, time in times)
        closing = next((time for index, time in times if index >= from_index), None)
        if closing is None or closing < speech_end_ms:
            return End(closing is None, early, delay_ms=None, delay_from_speech_ms=None)
        return End(False, early, closing - clip_end_ms, closing - speech_end_ms)

    return EndOfUtterance(eager=end(claims, last_word + 1), final=end(finals, last_text))
