"""Events of a session as messages of the native protocol."""

from __future__ import annotations

from parakeet_live.dialects import messages
from parakeet_live.session import events


def message_of(
    event: events.Event, seq: int, end_reason: messages.EndReason, formatted: str | None = None
) -> messages.EventMessage:
    """Message ``seq``, which tells a client about ``event``.

    ``end_reason`` is why the session ends, if it does; ``formatted`` the readable text of a final.
    """
    match event:
        case events.SpeechStarted():
            return messages.SpeechStarted(seq=seq, audio_ms=event.audio_ms)
        case events.Partial():
            return messages.Partial(
                seq=seq,
                utterance=event.utterance,
                text=event.text,
                words=_words(event.words),
                audio_ms=event.audio_ms,
            )
        case events.Eou():
            return messages.Eou(seq=seq, utterance=event.utterance, audio_ms=event.audio_ms)
        case events.Resumed():
            return messages.Resumed(seq=seq, utterance=event.utterance, audio_ms=event.audio_ms)
        case events.Final():
            return messages.Final(
                seq=seq,
                utterance=event.utterance,
                text=event.text,
                words=_words(event.words),
                audio_ms=event.audio_ms,
                reason=event.reason,
                speech_end_ms=event.speech_end_ms,
                eou_ms=event.eou_ms,
                commit_ms=event.audio_ms,
                formatted=formatted,
                timing=_timing(event.timing),
            )
        case events.Cancelled():
            return messages.Cancelled(seq=seq, audio_ms=event.audio_ms)
        case events.Done():
            return messages.Done(
                seq=seq, audio_ms=event.audio_ms, utterances=event.utterances, reason=end_reason
            )


def _timing(timing: events.Timing | None) -> messages.Timing | None:
    if timing is None:
        return None
    return messages.Timing(queue_ms=timing.queue_ms, compute_ms=timing.compute_ms, total_ms=timing.total_ms)


def _words(words: tuple[events.Word, ...]) -> list[messages.Word]:
    return [
        messages.Word(
            text=word.text,
            start_ms=word.start_ms,
            end_ms=word.end_ms,
            confidence=round(float(word.confidence), 3),
        )
        for word in words
    ]
