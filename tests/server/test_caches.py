"""Caches of a batch: seen in place or copied, the same numbers; written into the right rows and ring slots."""

from __future__ import annotations

import numpy as np
import pytest

from parakeet_live.engine.caches import EncoderCaches, rows_of
from parakeet_models.bundle import Geometry

GEOMETRY = Geometry(
    mel_bins=16,
    d_model=8,
    layers=2,
    heads=2,
    subsampling_channels=3,
    prediction_hidden=4,
    joint_hidden=4,
    vocabulary=9,
    attention_left=6,
)
SLOTS, FRAMES = 6, 4


def outputs(
    caches: EncoderCaches, slots: np.ndarray, seed: int, frames: int = FRAMES
) -> dict[str, np.ndarray]:
    """Random new caches, shaped as the encoder returns them."""
    rng = np.random.default_rng(seed)
    shapes = {
        name: value.shape for name, value in caches.read(slots).items() if name.startswith(("stage", "conv"))
    }
    heads, size = GEOMETRY.heads, GEOMETRY.head_size
    shapes["rows"] = (len(slots), GEOMETRY.layers * 2 * heads, 1, frames, size)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def ring_name(index: int) -> str:
    """What the ring is called that gets the heads of this place among the new rows."""
    return f"{('key', 'value')[index % 2]}_{index // 2}"


@pytest.mark.parametrize(
    ("slots", "expected"),
    [([2, 3, 4], slice(2, 5)), ([3], slice(3, 4)), ([1, 3], None), ([3, 2], None), ([1, 3, 2, 4], None)],
)
def test_only_ascending_neighbours_are_a_range(slots: list[int], expected: slice | None) -> None:
    rows = rows_of(np.array(slots))
    if expected is None:
        assert isinstance(rows, np.ndarray)
    else:
        assert rows == expected


def test_in_place_or_copied_the_same_numbers() -> None:
    caches = EncoderCaches(GEOMETRY, SLOTS)
    for step in range(5):
        for slots in (np.array([0, 1, 2]), np.array([5, 3])):
            caches.write(slots, outputs(caches, slots, step))
    picked = np.array([1, 2, 3])
    seen = caches.read(rows_of(picked))
    copied = caches.read(picked)
    assert seen["key_0"].base is not None
    for name, value in seen.items():
        assert np.array_equal(value, copied[name]), name


@pytest.mark.parametrize("steps", [[2], [4, 4], [2, 4], [6], [4, 6], [4, 8], [2, 16], [2, 2, 2, 2, 4]])
def test_rings_hold_the_newest_frames(steps: list[int]) -> None:
    caches, slots = EncoderCaches(GEOMETRY, SLOTS), np.array([4, 1])
    # Row 1 is two frames further, so that the rows wrap at different steps.
    ahead = outputs(caches, slots[1:], 99, frames=2)
    caches.write(slots[1:], ahead)
    written = [outputs(caches, slots, seed, frames) for seed, frames in enumerate(steps)]
    for new in written:
        caches.write(slots, new)
    found, left = caches.read(slots), GEOMETRY.attention_left
    for row, first in enumerate(([], [ahead["rows"][0]])):
        frames = np.concatenate([*first, *(new["rows"][row] for new in written)], axis=2)
        count = frames.shape[2]
        kept = min(count, left)
        assert (found["position"][row], found["valid"][row]) == (count % left, kept)
        places = np.arange(count - kept, count) % left
        for index, expected in enumerate(np.split(frames[..., count - kept :, :], 2 * GEOMETRY.layers)):
            assert np.array_equal(found[ring_name(index)][row][..., places, :], expected)
    assert np.array_equal(found["conv_0"], written[-1]["conv_0"])
    assert not caches.read(np.array([0]))["key_0"].any()
    caches.reset(4)
    assert not any(value.any() for value in caches.read(slice(4, 5)).values())
