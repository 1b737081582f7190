"""The front end against the published reference values and against itself in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.audio.mel import StreamingMel
from parakeet_models.mel import MelParameters, frames_to_log_mel, hann_window, log_mel, mel_filterbank

PARAMETERS = MelParameters()
SILENCE = -16.6355
SINE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)).astype(np.float32)
IMPULSE = np.zeros(16_000, np.float32)
IMPULSE[8_000] = 1.0
BINS = (0, 5, 11, 12, 40, 80, 127)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (0, (-8.2612, -6.7470, -4.2097, -4.1952, -6.0654, -8.2044, -9.7504)),
        (1, (-13.1742, -11.2584, -9.3226, -8.6589, -10.7025, -12.8250, -14.2913)),
        (50, (-16.2756, -15.5588, -13.3415, -9.5811, -16.3524, -16.6353, -16.6355)),
    ],
)
def test_sine_matches_the_golden_table(frame: int, expected: tuple[float, ...]) -> None:
    assert log_mel(SINE, PARAMETERS)[frame, BINS] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (49, (-13.3967, -10.3357, -6.9239)),
        (50, (-10.4160, -5.5401, -2.0895)),
        (51, (-15.5378, -10.1829, -6.7295)),
    ],
)
def test_impulse_matches_the_golden_table(frame: int, expected: tuple[float, ...]) -> None:
    assert log_mel(IMPULSE, PARAMETERS)[frame, (0, 40, 127)] == pytest.approx(expected, abs=1e-3)


def test_tables() -> None:
    window, filters = hann_window(400), mel_filterbank(PARAMETERS)
    assert window.sum() == pytest.approx(199.5, abs=1e-3)
    assert (window.astype(np.float64) ** 2).sum() == pytest.approx(149.625, abs=1e-3)
    assert filters.sum() == pytest.approx(4.0904877, abs=1e-5)
    assert np.flatnonzero(filters[:, 0]).tolist() == [1]
    assert filters[[54, 55, 56], 64] == pytest.approx([0.0112167, 0.0188183, 0.00064915], abs=1e-6)


def test_digital_silence() -> None:
    mel = log_mel(np.zeros(4_000, np.float32), PARAMETERS)
    assert mel.shape == (25, 128)
    assert mel == pytest.approx(SILENCE, abs=1e-3)


def stream(samples: np.ndarray, cuts: list[int]) -> np.ndarray:
    mel = StreamingMel(PARAMETERS)
    frames, start = [], 0
    for size in [*cuts, len(samples)]:
        mel.push(samples[start : start + size])
        start += size
        while (wanted := 8 if frames else 1) <= mel.available:
            frames.append(mel.read(wanted))
    return np.concatenate(frames) if frames else np.zeros((0, 128), np.float32)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 5_000), max_size=30), st.integers(0, 40_000))
def test_any_cut_gives_bit_equal_frames(cuts: list[int], count: int) -> None:
    samples = np.random.default_rng(count).standard_normal(count).astype(np.float32) * 0.2
    pieces, whole = stream(samples, cuts), stream(samples, [])
    assert np.array_equal(pieces, whole)
    reference = log_mel(samples, PARAMETERS)[: len(whole)]
    # The whole signal's last frames see its end, which a stream cannot know; those before are the same.
    exact = min(len(reference), max(0, (count - 200) // 160 + 1))
    assert np.abs(whole[:exact] - reference[:exact]).max(initial=0.0) < 1e-5


@given(st.integers(0, 4_000))
def test_frames_available_and_missing(count: int) -> None:
    mel = StreamingMel(PARAMETERS)
    mel.push(np.zeros(count, np.float32))
    assert mel.available == (max(0, (count - 200) // 160 + 1) if count >= 200 else 0)
    missing = mel.missing(9)
    assert missing == max(0, 1480 - count)
    mel.push(np.zeros(missing, np.float32))
    assert mel.available >= 9


def test_reads_are_whole_blocks() -> None:
    mel = StreamingMel(PARAMETERS)
    mel.push(np.zeros(16_000, np.float32))
    with pytest.raises(ValueError, match="blocks"):
        mel.read(8)
    mel.read(9)
    with pytest.raises(ValueError, match="available"):
        mel.read(800)


def test_stays_fp32() -> None:
    frames = np.ones((3, 400), np.float32)
    assert frames_to_log_mel(frames, PARAMETERS).dtype == np.float32
    assert log_mel(SINE.astype(np.float64), PARAMETERS).dtype == np.float32


def test_reads_of_any_size_are_bit_equal() -> None:
    samples = np.random.default_rng(0).standard_normal(60_000).astype(np.float32) * 0.2
    found = []
    for step in (8, 16, 128):
        mel = StreamingMel(PARAMETERS)
        mel.push(samples)
        frames = [mel.read(1 if step == 8 else step - 7)]
        while mel.available >= step:
            frames.append(mel.read(step))
        found.append(np.concatenate(frames))
    shortest = min(len(frames) for frames in found)
    assert shortest > 200
    assert all(np.array_equal(frames[:shortest], found[0][:shortest]) for frames in found)
