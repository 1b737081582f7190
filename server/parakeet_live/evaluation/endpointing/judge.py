"""Compares the turns of a stream with what its session reported.

A word belongs to the turn that was spoken when it began, give or take: a recogniser emits a word somewhat after its
sound, so a turn also owns words that begin up to LATE_WORD_MS after its speech. What begins later, and before the next
turn, was not said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parakeet_live.engine.together import Heard
from parakeet_live.evaluation.endpointing.compose import Stream, Turn
from parakeet_live.session.events import Eou, Final, Reason

LATE_WORD_MS = 600
"""How long after the end of its turn a word may begin."""
EARLY_WORD_MS = 200
"""How long before the begin of its turn a word may begin."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How one turn was ended. Delays in milliseconds of audio from the true end of its speech."""

    turn: Turn
    early: bool
    """A final cut it: before its speech was over, or with some of its words left for another final."""
    eager_early: bool
    """The model claimed its end before its speech was over, whether or not the claim was committed."""
    missed: bool
    """Words of it were still open when the next turn began."""
    unheard: bool
    """No word of it was recognised, so that there was nothing to end."""
    final_delay_ms: int | None
    """To the final that ended it; None where it was cut, missed or unheard."""
    eager_delay_ms: int | None
    """To the model's own end of utterance behind that final; None where it came without one."""
    reason: Reason | None
    """Of the final that ended it."""


@dataclass(frozen=True, slots=True)
class StreamResult:
    """The turns of one stream, and the words that nobody said."""

    stream: Stream
    turns: tuple[TurnResult, ...]
    false_words: int
    quiet_ms: int
    """Audio in which such words could come: outside the turns."""


def judge(stream: Stream, heard: Sequence[Heard]) -> StreamResult:
    """What became of the turns of ``stream``, of which ``heard`` is everything its session reported."""
    turns = stream.turns
    borders = [*(turn.begin_ms for turn in turns[1:]), stream.milliseconds]
    results = tuple(_judge_turn(turn, until, heard) for turn, until in zip(turns, borders, strict=False))
    words = [word for item in heard if isinstance(item.event, Final) for word in item.event.words]
    owned = sum(any(_owns(turn, word.start_ms) for turn in turns) for word in words)
    speech = sum(turn.end_ms + LATE_WORD_MS - turn.begin_ms + EARLY_WORD_MS for turn in turns)
    return StreamResult(stream, results, len(words) - owned, stream.milliseconds - speech)


def _judge_turn(turn: Turn, until: int, heard: Sequence[Heard]) -> TurnResult:
    """``until``: where the next turn begins."""
    finals = [
        (item, item.event)
        for item in heard
        if isinstance(item.event, Final) and any(_owns(turn, word.start_ms) for word in item.event.words)
    ]
    in_time = [(item, final) for item, final in finals if item.live and item.heard_ms < until]
    missed = len(in_time) < len(finals)
    early = len(in_time) > 1 or any(item.heard_ms < turn.end_ms for item, _ in in_time)
    claims = [
        item for item in heard if isinstance(item.event, Eou) and turn.begin_ms <= item.heard_ms < until
    ]
    final_delay = eager_delay = reason = None
    if in_time and not missed:
        closing, final = in_time[-1]
        reason = final.reason
        if closing.heard_ms >= turn.end_ms:
            final_delay = closing.heard_ms - turn.end_ms
            behind = [item.heard_ms for item in claims if item.heard_ms <= closing.heard_ms]
            if behind and final.eou_ms is not None:
                eager_delay = behind[-1] - turn.end_ms
    return TurnResult(
        turn=turn,
        early=early,
        eager_early=any(item.heard_ms < turn.end_ms for item in claims),
        missed=missed,
        unheard=not finals,
        final_delay_ms=final_delay,
        eager_delay_ms=eager_delay,
        reason=reason,
    )


def _owns(turn: Turn, word_start_ms: int) -> bool:
    return turn.begin_ms - EARLY_WORD_MS <= word_start_ms < turn.end_ms + LATE_WORD_MS
