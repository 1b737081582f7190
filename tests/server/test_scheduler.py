"""The batching policy as a pure function, and the counters beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parakeet_live.engine.cost import CostModel
from parakeet_live.engine.scheduler import BatchPolicy, Decision, ReadyStep
from parakeet_live.engine.stats import EngineStats, Histogram

POLICY = BatchPolicy(max_batch=4, max_wait=0.1, lanes=2, live_frames=2, period=0.16)
"""Two lanes; at 20 ms a step waiting pays from five streams on."""
COST = 0.02


def step(stream: int, since: float, frames: int = 2) -> ReadyStep:
    return ReadyStep(stream, since, frames)


def test_nothing_ready() -> None:
    assert POLICY.decide([], live=10, single_cost=COST, now=1.0) == Decision()


def test_few_streams_never_wait() -> None:
    assert POLICY.wait(4, COST) == 0.0
    assert POLICY.decide([step(1, 0.99)], live=4, single_cost=COST, now=1.0).batch == (step(1, 0.99),)


def test_many_streams_wait_for_company_but_not_for_ever() -> None:
    assert POLICY.wait(5, COST) == 0.1
    ready = [step(1, 0.98), step(2, 0.95)]
    assert POLICY.decide(ready, live=8, single_cost=COST, now=1.0) == Decision(again_at=pytest.approx(1.05))
    assert POLICY.decide(ready, live=8, single_cost=COST, now=1.051).batch == (step(2, 0.95), step(1, 0.98))


def test_a_full_batch_goes_at_once_oldest_first() -> None:
    ready = [step(n, 1.0 - n / 100) for n in range(6)]
    assert [s.stream for s in POLICY.decide(ready, live=9, single_cost=COST, now=1.0).batch] == [5, 4, 3, 2]


def test_when_every_live_stream_is_ready_there_is_nobody_to_wait_for() -> None:
    ready = [step(1, 0.99), step(2, 0.98)]
    assert len(POLICY.decide(ready, live=2, single_cost=COST, now=1.0).batch) == 2


def test_catching_up_does_not_wait_and_does_not_mix_with_live_steps() -> None:
    ready = [step(1, 0.99), step(2, 0.97, frames=16), step(3, 0.98)]
    assert POLICY.decide(ready, live=8, single_cost=COST, now=1.0).batch == (step(2, 0.97, frames=16),)


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.floats(0, 1), st.sampled_from([2, 4, 16])),
        unique_by=lambda t: t[0],
        max_size=20,
    ),
    st.integers(1, 30),
)
def test_a_batch_is_of_one_size_bounded_and_nobody_is_left_for_ever(
    steps: list[tuple[int, float, int]], live: int
) -> None:
    ready = [step(*s) for s in steps]
    decision = POLICY.decide(ready, live, COST, now=1.0)
    assert len(decision.batch) <= POLICY.max_batch
    assert len({s.frames for s in decision.batch}) <= 1
    if ready and not decision.batch:
        assert decision.again_at is not None
        assert POLICY.decide(ready, live, COST, now=decision.again_at + 1e-9).batch
    left, rounds = ready, 0
    while left:
        batch = POLICY.decide(left, live, COST, now=2.0).batch
        assert batch, "what waited long enough must run"
        left = [s for s in left if s not in batch]
        rounds += 1
    assert rounds <= len(ready)


def test_cost_follows_what_batches_take() -> None:
    cost = CostModel(single=0.013, large=0.041, large_batch=8)
    assert cost.single == pytest.approx(0.013)
    for _ in range(200):
        cost.observe(16, 2 * (0.009 + 0.004 * 16))
    assert cost.single == pytest.approx(0.026, rel=1e-3)
    assert CostModel(single=0.01, large=0.01, large_batch=1).single == pytest.approx(0.01)


def test_histogram_quantiles_are_upper_bounds() -> None:
    histogram = Histogram((1.0, 2.0, 5.0))
    assert histogram.quantile(0.5) == 0.0
    for value in (0.5, 1.5, 1.6, 9.0):
        histogram.add(value)
    assert (histogram.quantile(0.25), histogram.quantile(0.75), histogram.quantile(1.0)) == (1.0, 2.0, 9.0)
    assert histogram.counts == [1, 2, 0, 1]


def test_a_histogram_is_restored_from_its_data() -> None:
    histogram = Histogram((0.001, 0.002))
    for value in (0.0005, 0.0015, 0.5):
        histogram.add(value)
    assert Histogram.from_data(histogram.data(1000)) == Histogram((1.0, 2.0), [1, 1, 1], 502.0, 500.0)


def test_the_difference_of_two_histograms_is_what_came_between() -> None:
    histogram = Histogram((1.0, 2.0, 5.0))
    histogram.add(4.0)
    earlier = Histogram.from_data(histogram.data())
    assert histogram.since(earlier) == Histogram((1.0, 2.0, 5.0))
    histogram.add(1.5)
    between = histogram.since(earlier)
    assert (between.counts, between.total) == ([0, 1, 0, 0], 1.5)
    assert between.largest == 2.0, "the largest came before: all that is known is the bucket"
    histogram.add(7.0)
    assert histogram.since(earlier).largest == 7.0


def test_snapshot_of_an_idle_engine() -> None:
    snapshot = EngineStats(batch_size=Histogram((1.0, 2.0))).snapshot()
    assert snapshot["batch_size"]["count"] == 0
    assert snapshot["queue_ms"]["p95"] == 0.0
