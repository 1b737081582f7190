"""What is sent on a connection, and what is sent again on the next."""

from __future__ import annotations

import asyncio

import pytest

from parakeet_live.dialects.native import Result
from parakeet_live.web.outbox import MAX_NOTICES, Closing, Outbox
from parakeet_live.web.results import COALESCE_FROM, KEPT_RESULTS, ResultLog, ResultsGoneError


def partial(seq: int) -> Result:
    return Result(seq, f"partial {seq}", replaceable=True, supersedes=True)


def final(seq: int) -> Result:
    return Result(seq, f"final {seq}", supersedes=True)


def other(seq: int) -> Result:
    return Result(seq, f"other {seq}")


def taken(log: ResultLog) -> list[int]:
    """Numbers of everything that is to be sent."""
    numbers = []
    while (result := log.take()) is not None:
        numbers.append(result.seq)
    return numbers


def filled(*results: Result) -> ResultLog:
    log = ResultLog()
    for result in results:
        log.put(result)
    return log


def test_few_results_are_all_sent_in_order() -> None:
    assert taken(filled(*[partial(n) for n in range(1, COALESCE_FROM + 1)])) == list(
        range(1, COALESCE_FROM + 1)
    )


def test_many_partials_give_way_and_nothing_else_does() -> None:
    log = ResultLog()
    for number in range(100):
        for turn in range(10):
            log.put(partial(1 + 12 * number + turn))
        log.put(other(11 + 12 * number))
        log.put(final(12 + 12 * number))
    assert log.unsent < COALESCE_FROM + 3 * 100
    numbers = taken(log)
    assert {12 + 12 * n for n in range(100)} | {11 + 12 * n for n in range(100)} <= set(numbers)
    assert numbers == sorted(numbers)


def test_after_a_reconnect_only_what_was_not_seen_is_sent_again() -> None:
    log = filled(partial(1), partial(2), other(3), final(4), partial(5), partial(6), other(7))
    assert len(taken(log)) == 7
    log.put(partial(8))
    log.rewind(3)
    # Of the partials the newest, and those before it only if no later one holds their text.
    assert taken(log) == [4, 6, 7, 8]
    log.rewind(8)
    assert taken(log) == []
    log.rewind(0)
    assert taken(log) == [3, 4, 7, 8]


def test_results_may_be_asked_for_again_and_again() -> None:
    log = filled(final(1), final(2), partial(3))
    assert taken(log) == [1, 2, 3]
    for _ in range(3):
        log.rewind(1)
        assert taken(log) == [2, 3]
    log.rewind(1)
    log.rewind(1)
    assert taken(log) == [2, 3]


def test_only_the_newest_results_are_kept() -> None:
    log = filled(*[final(n) for n in range(1, KEPT_RESULTS + 11)])
    assert len(taken(log)) == KEPT_RESULTS + 10
    log.rewind(10)
    assert taken(log) == list(range(11, KEPT_RESULTS + 11))
    with pytest.raises(ResultsGoneError):
        log.rewind(9)


# Outbox


async def sent(outbox: Outbox) -> list[str | Closing]:
    items: list[str | Closing] = [await outbox.get()]
    while not isinstance(items[-1], Closing):
        items.append(await outbox.get())
    return items


async def test_notices_go_first_and_the_closing_last() -> None:
    outbox = Outbox(filled(final(1)))
    outbox.acknowledge("ack 1")
    outbox.notice("ready")
    outbox.acknowledge("ack 2")
    outbox.close(Closing(1000))
    outbox.notice("too late")
    outbox.close(Closing(1011))
    assert await sent(outbox) == ["ready", "ack 2", "final 1", Closing(1000)]


async def test_a_farewell_comes_after_the_results() -> None:
    outbox = Outbox(filled(final(1), final(2)))
    outbox.close(Closing(1008, "why", "error"))
    assert await sent(outbox) == ["final 1", "final 2", "error", Closing(1008, "why", "error")]


async def test_notices_are_bounded() -> None:
    outbox = Outbox(ResultLog())
    for number in range(1000):
        outbox.notice(str(number))
    outbox.close(Closing(1000))
    assert await sent(outbox) == [*map(str, range(1000 - MAX_NOTICES, 1000)), Closing(1000)]


async def test_an_abandoned_connection_gets_its_closing_at_once() -> None:
    outbox = Outbox(filled(final(1)))
    outbox.close(Closing(4003), abandon=True)
    assert await sent(outbox) == [Closing(4003)]


async def test_the_outbox_waits_for_results() -> None:
    log = ResultLog()
    outbox = Outbox(log)
    reader = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    log.put(final(1))
    outbox.wake()
    assert await reader == "final 1"
