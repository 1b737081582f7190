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


def outputs(caches: EncoderCaches, slots: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Random new caches, shaped as the encoder returns them."""
    rng = np.random.default_rng(seed)
    new = {}
    for name, value in caches.read(slots).items():
        shape = list(value.shape)
        if name in ("position", "valid"):
            continue
        if name.startswith("key"):
            shape[4] = FRAMES
        if name.startswith("value"):
            shape[3] = FRAMES
        new[name] = rng.standard_normal(shape).astype(np.float32)
    return new


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
            caches.write(slots, FRAMES, outputs(caches, slots, step))
    picked = np.array([1, 2, 3])
    seen = caches.read(rows_of(picked))
    copied = caches.read(picked)
    assert seen["key_0"].base is not None
    for name, value in seen.items():
        assert np.array_equal(value, copied[name]), name


def test_ring_holds_the_newest_frames() -> None:
    caches, slots = EncoderCaches(GEOMETRY, SLOTS), np.array([4, 1])
    written = [outputs(caches, slots, step) for step in range(2)]
    for new in written:
        caches.write(slots, FRAMES, new)
    found = caches.read(slots)
    assert found["position"].tolist() == [2, 2]
    assert found["valid"].tolist() == [6, 6]
    frames = np.concatenate([new["value_1"] for new in written], axis=3)
    assert np.array_equal(found["value_1"][..., 2:, :], frames[..., 2:6, :])
    assert np.array_equal(found["value_1"][..., :2, :], frames[..., 6:, :])
    assert np.array_equal(found["conv_0"], written[1]["conv_0"])
    assert not caches.read(np.array([0]))["key_0"].any()
    caches.reset(4)
    assert not any(value.any() for value in caches.read(slice(4, 5)).values())
