"""Word times against marks whose places are known: no drift, whatever happened before, at any sample rate."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from parakeet_live.audio.formats import DeclaredFormat
from parakeet_live.dialects.native import Audio, NativeSession, ServerInfo
from parakeet_live.dialects.query import StreamRequest
from parakeet_live.session.events import Done, Final, Reason
from support.markers import MarkStream, with_marks
from support.sounds import RATE, silence

FRAME_MS = 80
HOURS = 2


def test_after_two_hours_a_word_is_where_it_was_said() -> None:
    """A word at every full minute, and every fifth one ended by force."""
    stream = MarkStream()
    minute = with_marks(60, [5.0])
    for index in range(HOURS * 60):
        stream.push(minute[: 10 * RATE], piece=RATE // 2)
        if index % 5 == 0:
            stream.finalize()
        stream.push(minute[10 * RATE :], piece=60 * RATE)
    stream.end()
    starts = [word.start_ms for word in stream.words]
    assert len(starts) == HOURS * 60
    late = [start - (60 * index + 5) * 1_000 for index, start in enumerate(starts)]
    assert max(late) - min(late) <= FRAME_MS
    assert -FRAME_MS <= min(late) <= max(late) <= FRAME_MS
    assert stream.events[-1] == Done(HOURS * 3_600_000, HOURS * 60)
    times = [time for word in stream.words for time in (word.start_ms, word.end_ms)]
    assert times == sorted(times)
    # Nothing piles up over the hours.
    assert stream.session.backlog_samples == 0


@pytest.mark.parametrize("forced", [False, True])
def test_utterances_before_a_word_do_not_shift_it(forced: bool) -> None:
    """A mark at 120 s after none, ten and forty utterances, ended by the model or by the client."""
    starts = []
    for utterances in (0, 10, 40):
        stream = MarkStream()
        for index in range(utterances):
            stream.push(with_marks(0.6, [0.1 + 0.01 * (index % 16)]))
            if forced:
                stream.finalize()
            stream.push(silence(1.9))
        stream.push(silence(120 - 2.5 * utterances))
        stream.push(with_marks(2, [0.0]))
        stream.end()
        reasons = [event.reason for event in stream.events if isinstance(event, Final)]
        assert len(reasons) == utterances + 1
        assert reasons[:-1].count(Reason.FINALIZE) == (utterances if forced else 0)
        starts.append(stream.words[-1].start_ms)
    assert max(starts) - min(starts) <= FRAME_MS
    assert all(abs(start - 120_000) <= FRAME_MS for start in starts)


def test_cancelled_audio_does_not_shift_what_follows() -> None:
    starts = []
    for cancelled in (False, True):
        stream = MarkStream()
        stream.push(with_marks(5, [1.0, 4.9]))
        stream.session.push(with_marks(3, [1.0]))
        if cancelled:
            stream.events += stream.session.cancel()
        stream.run()
        stream.push(with_marks(3, [1.0]))
        stream.end()
        starts.append(stream.words[-1].start_ms)
    assert abs(starts[0] - starts[1]) <= FRAME_MS
    assert all(abs(start - 9_000) <= FRAME_MS for start in starts)


def test_times_are_equal_at_every_sample_rate() -> None:
    audio = with_marks(12, [1.0, 3.5, 7.25, 10.0])
    expected = None
    for rate in (16_000, 8_000, 11_025, 44_100, 48_000, 96_000):
        dialect = NativeSession(
            "s", StreamRequest(DeclaredFormat(sample_rate=rate)), ServerInfo("m", ("en",), 160)
        )
        stream = MarkStream()
        sent = audio if rate == RATE else soxr.resample(audio, RATE, rate)
        pcm = np.clip(np.rint(sent * 32768), -32768, 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm), 999):
            for action in dialect.receive_bytes(pcm[start : start + 999]):
                if isinstance(action, Audio):  # the marks are noise, about which a client is warned
                    stream.push(action.samples)
        for action in dialect.receive_text('{"type":"end"}'):
            if isinstance(action, Audio):
                stream.push(action.samples)
        stream.end()
        starts = [word.start_ms for word in stream.words]
        expected = expected or starts
        assert len(starts) == 4, rate
        assert [abs(start - mark) <= 50 for start, mark in zip(starts, expected, strict=True)] == [
            True
        ] * 4, rate


@pytest.mark.parametrize("piece", [160, 2_560, 50_000])
@pytest.mark.parametrize("largest", [2, 16])
def test_marks_on_every_phase_of_a_step_are_found_where_they_are(piece: int, largest: int) -> None:
    marks = [0.5 + 1.01 * index for index in range(30)]
    stream = MarkStream(largest=largest)
    stream.push(with_marks(32, marks), piece=piece)
    stream.end()
    assert len(stream.words) == len(marks)
    for word, mark in zip(stream.words, marks, strict=True):
        assert abs(word.start_ms - 1_000 * mark) <= FRAME_MS
        assert word.end_ms > word.start_ms
