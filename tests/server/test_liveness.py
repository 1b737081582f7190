"""Warnings and ends by the clock, without a clock."""

from __future__ import annotations

from parakeet_live.dialects.messages import EndReason, WarningCode
from parakeet_live.engine.arrivals import Arrivals
from parakeet_live.web.liveness import LAG_REPEAT_SECONDS, LAG_WARNING_SECONDS, Liveness, Warn

RATE = 16_000


def due(liveness: Liveness, now: float, lag: float = 0.0) -> list[WarningCode | EndReason]:
    return [item.code if isinstance(item, Warn) else item for item in liveness.check(now, lag)]


def test_an_idle_session_is_warned_and_then_ended() -> None:
    liveness = Liveness(0.0, idle_timeout=300.0, max_session=0.0)
    assert due(liveness, 269.0) == []
    assert due(liveness, 271.0) == [WarningCode.IDLE]
    assert due(liveness, 280.0) == []
    liveness.heard(281.0)
    assert due(liveness, 560.0) == [WarningCode.IDLE]
    assert due(liveness, 581.0) == [EndReason.IDLE_TIMEOUT]


def test_an_old_session_is_warned_and_then_ended() -> None:
    liveness = Liveness(0.0, idle_timeout=0.0, max_session=100.0)
    assert due(liveness, 79.0) == []
    (warning,) = liveness.check(81.0, 0.0)
    assert isinstance(warning, Warn)
    assert (warning.code, warning.details) == (WarningCode.SESSION_ENDING, {"remaining_ms": 19_000})
    liveness.heard(99.0)
    assert due(liveness, 100.0) == [EndReason.SESSION_LIMIT]


def test_a_check_that_comes_too_late_warns_before_it_ends() -> None:
    for limits, code, end in (
        ((10.0, 0.0), WarningCode.IDLE, EndReason.IDLE_TIMEOUT),
        ((0.0, 10.0), WarningCode.SESSION_ENDING, EndReason.SESSION_LIMIT),
    ):
        liveness = Liveness(0.0, *limits)
        (warning,) = liveness.check(14.0, 0.0)
        assert isinstance(warning, Warn)
        assert (warning.code, warning.details["remaining_ms"]) == (code, 0)
        assert due(liveness, 14.5) == [end]
    stalled = Liveness(0.0, 10.0, 0.0)
    assert due(stalled, 14.0) == [WarningCode.IDLE]
    stalled.heard(14.1)  # it had been lying in the socket
    assert due(stalled, 14.5) == []


def test_limits_of_zero_are_none() -> None:
    assert due(Liveness(0.0, 0.0, 0.0), 1e9) == []


def test_lateness_is_told_but_not_all_the_time() -> None:
    liveness = Liveness(0.0, 0.0, 0.0)
    assert due(liveness, 1.0, LAG_WARNING_SECONDS - 0.01) == []
    assert due(liveness, 2.0, LAG_WARNING_SECONDS) == [WarningCode.LAGGING]
    assert due(liveness, 3.0, 5.0) == []
    assert due(liveness, 2.0 + LAG_REPEAT_SECONDS, 5.0) == [WarningCode.LAGGING]


# Lateness itself


def test_live_audio_is_late_since_it_came() -> None:
    arrivals = Arrivals(RATE)
    for block in range(10):
        arrivals.add(RATE // 10, block / 10)
    assert arrivals.late(RATE // 10, 3.0) == 3.0 - 0.0 - 0.1
    arrivals.forget_before(RATE // 2)
    assert abs(arrivals.late(RATE // 2 + 1, 3.0) - 2.5) < 0.01
    arrivals.forget_before(RATE)
    assert arrivals.late(RATE, 9.0) == 0.0


def test_an_upload_is_not_late_while_it_is_recognised_faster_than_spoken() -> None:
    arrivals = Arrivals(RATE)
    arrivals.add(60 * RATE, 0.0)
    assert arrivals.ahead(1.0) == 59.0
    arrivals.forget_before(20 * RATE)
    assert arrivals.late(20 * RATE + 1, 1.0) < 0.0
    assert arrivals.late(20 * RATE, 25.0) == 5.0


def test_a_pause_of_the_speaker_is_nobodys_lateness() -> None:
    arrivals = Arrivals(RATE)
    arrivals.add(RATE, 0.0)
    arrivals.forget_before(RATE)
    arrivals.add(RATE, 100.0)
    assert arrivals.late(RATE + 1, 100.5) < 0.51


def test_tiny_frames_share_a_time_stamp() -> None:
    arrivals = Arrivals(RATE)
    for frame in range(3750):
        arrivals.add(128, frame * 0.008)
    assert arrivals.oldest() == 0.0
    assert abs(arrivals.came(3750 * 128) - 30.0) < 0.1
    arrivals.add(0, 31.0)
    assert arrivals.came(3750 * 128 + 1) == 31.0
