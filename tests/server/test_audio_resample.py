"""Sample-rate conversion: the same bits for any cut, exact lengths, no artefacts of the packets."""

from __future__ import annotations

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.audio.resample import Resampler
from parakeet_models.mel import Float32

RATES = [8000, 11_025, 16_001, 22_050, 24_000, 44_100, 48_000, 96_000, 192_000]


def noise(count: int, seed: int = 0) -> Float32:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, count).astype(np.float32)


def convert(samples: Float32, rate: int, sizes: list[int]) -> Float32:
    """Feed ``samples`` in pieces of these sizes, repeated, then flush."""
    resampler = Resampler(rate)
    out, at, turn = [], 0, 0
    while at < len(samples):
        size = sizes[turn % len(sizes)]
        out.append(resampler.push(samples[at : at + size]))
        at, turn = at + size, turn + 1
    return np.concatenate([*out, resampler.flush()])


@settings(max_examples=40, deadline=None)
@given(
    rate=st.sampled_from(RATES),
    count=st.integers(0, 6000),
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=6),
)
def test_any_cut_gives_the_same_bits(rate: int, count: int, sizes: list[int]) -> None:
    samples = noise(count)
    np.testing.assert_array_equal(convert(samples, rate, sizes), convert(samples, rate, [max(1, count)]))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seconds", [0.0, 0.0001, 0.01, 0.5, 2.003])
def test_length_is_exact(rate: int, seconds: float) -> None:
    count = int(rate * seconds)
    out = convert(noise(count), rate, [rate // 50])
    assert abs(len(out) - count * 16_000 / rate) <= 0.5


@pytest.mark.parametrize("rate", RATES)
def test_packets_of_20_ms_equal_one_piece(rate: int) -> None:
    """A converter started afresh for every packet would tick at 50 Hz; this one equals soxr on the whole."""
    time = np.arange(rate * 2) / rate
    sweep = (0.5 * np.sin(2 * np.pi * (100 * time + 800 * time**2))).astype(np.float32)
    whole = soxr.resample(sweep, rate, 16_000, quality="HQ")
    streamed = convert(sweep, rate, [rate // 50])
    assert abs(len(streamed) - len(whole)) <= 1
    inner = slice(500, min(len(whole), len(streamed)) - 500)
    np.testing.assert_allclose(streamed[inner], whole[inner], atol=1e-4)


@pytest.mark.parametrize(
    ("rate", "most"), [(8000, 31), (16_001, 60), (44_100, 41), (48_000, 41), (192_000, 80)]
)
def test_little_audio_is_kept_back(rate: int, most: int) -> None:
    """The figures that docs/protocol.md states, in milliseconds of audio: nothing here depends on time."""
    resampler, block = Resampler(rate), rate // 50
    held, given_back = 0.0, 0
    for turn in range(1, 150):
        given_back += len(resampler.push(noise(block, turn)))
        held = max(held, (turn * block / rate - given_back / 16_000) * 1000)
    assert held <= most


@pytest.mark.parametrize("rate", [8000, 11_025, 44_100])
def test_flushes_never_shift_the_clock(rate: int) -> None:
    resampler = Resampler(rate)
    taken = given_back = 0
    for turn in range(200):
        piece = noise(97 + turn, turn)
        taken += len(piece)
        given_back += len(resampler.push(piece)) + len(resampler.flush())
        assert abs(given_back - taken * 16_000 / rate) <= 0.5


def test_flush_of_nothing_is_nothing() -> None:
    resampler = Resampler(8000)
    assert len(resampler.flush()) == 0
    assert len(resampler.push(noise(0))) == 0
    assert len(resampler.flush()) == 0
