"""What the encoder remembers of every stream, in one row of plain arrays per slot.

A batch over neighbouring slots sees its rows where they are; any other batch sees copies. Copying is the memory
traffic of the attention once more (4.9 MB a stream at full size), so slots are given out lowest first, and the copies
go to memory that is kept: fresh memory for every step costs five times as much as the copying, in page faults.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from parakeet_models.bundle import Geometry
from parakeet_models.mel import Float32

Rows = slice | NDArray[np.int64]
"""The rows of a batch: a range, or one index each."""


def rows_of(slots: NDArray[np.int64]) -> Rows:
    """``slots`` [B] as a range if they are ascending neighbours."""
    first, last = int(slots[0]), int(slots[-1])
    if last - first + 1 == len(slots) and (np.diff(slots) == 1).all():
        return slice(first, last + 1)
    return slots


class EncoderCaches:
    """Attention rings, convolution and subsampling caches. Threads may use it at the same time for distinct rows."""

    def __init__(self, geometry: Geometry, slots: int) -> None:
        left, size, layers = geometry.attention_left, geometry.head_size, geometry.layers
        width1, width2 = geometry.stage_widths
        # All rings are one array, each layer's keys before its values, so that a stream's new frames are written in
        # one assignment or, where the rings wrap, two.
        self._rings = np.zeros((2 * layers, slots, geometry.heads, 1, left, size), np.float32)
        shapes: dict[str, tuple[int, ...]] = {
            "stage1": (geometry.subsampling_channels, 1, width1),
            "stage2": (geometry.subsampling_channels, 1, width2),
        }
        shapes |= {f"conv_{layer}": (geometry.conv_kernel - 1, geometry.d_model) for layer in range(layers)}
        self._caches = {name: np.zeros((slots, *shape), np.float32) for name, shape in shapes.items()}
        for layer in range(layers):
            self._caches[f"key_{layer}"], self._caches[f"value_{layer}"] = self._rings[
                2 * layer : 2 * layer + 2
            ]
        self._position = np.zeros(slots, np.int64)
        self._valid = np.zeros(slots, np.int64)
        self._left = left
        self._scratch = threading.local()

    def reset(self, slot: int) -> None:
        """The state of a stream that has not begun."""
        for cache in self._caches.values():
            cache[slot] = 0.0
        self._position[slot] = self._valid[slot] = 0

    def read(self, rows: Rows) -> dict[str, Float32 | NDArray[np.int64]]:
        """The encoder's inputs by name; valid until this thread's next read."""
        found: dict[str, Float32 | NDArray[np.int64]] = {
            "position": self._position[rows],
            "valid": self._valid[rows],
        }
        if isinstance(rows, slice):
            return found | {name: cache[rows] for name, cache in self._caches.items()}
        scratch = self._thread_scratch(len(rows))
        for name, cache in self._caches.items():
            # Without a mode, `take` would copy into a temporary first.
            found[name] = np.take(cache, rows, axis=0, out=scratch[name][: len(rows)], mode="clip")
        return found

    def write(self, slots: NDArray[np.int64], new: dict[str, Float32]) -> None:
        """Store what a step of n frames returned, and advance by them.

        ``rows`` [B, layers * 2 * heads, 1, n, head_size] are the new frames of the rings; the others replace the
        caches that :meth:`read` has by their names.
        """
        rings, left, frames = self._rings, self._left, new["rows"].shape[3]
        pieces = new["rows"].reshape(len(slots), rings.shape[0], *rings.shape[2:4], frames, rings.shape[5])
        if frames > left:
            pieces = pieces[..., -left:, :]
        end = (self._position[slots] + frames) % left
        for piece, slot, stop in zip(pieces, slots.tolist(), end.tolist(), strict=True):
            ring = rings[:, slot]
            before = piece.shape[3] - stop  # the frames that go before the ring's end
            if before <= 0:
                ring[..., -before:stop, :] = piece
            else:
                ring[..., left - before :, :] = piece[..., :before, :]
                ring[..., :stop, :] = piece[..., before:, :]
        rows = rows_of(slots)
        for name, value in new.items():
            if name != "rows":
                self._caches[name][rows] = value
        self._position[slots] = end
        self._valid[slots] = np.minimum(self._valid[slots] + frames, left)

    def _thread_scratch(self, rows: int) -> dict[str, Float32]:
        """Memory for copies of ``rows`` rows of every cache, kept by the thread that uses it."""
        held: tuple[int, dict[str, Float32]] = getattr(self._scratch, "held", (0, {}))
        if held[0] < rows:
            arrays = {
                name: np.empty((rows, *cache.shape[1:]), np.float32) for name, cache in self._caches.items()
            }
            held = self._scratch.held = (rows, arrays)
        return held[1]
