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
        heads, size, left = geometry.heads, geometry.head_size, geometry.attention_left
        width1, width2 = geometry.stage_widths
        shapes: dict[str, tuple[int, ...]] = {
            "stage1": (geometry.subsampling_channels, 1, width1),
            "stage2": (geometry.subsampling_channels, 1, width2),
        }
        for layer in range(geometry.layers):
            shapes[f"key_{layer}"] = (heads, 1, size, left)
            shapes[f"value_{layer}"] = (heads, 1, left, size)
            shapes[f"conv_{layer}"] = (geometry.conv_kernel - 1, geometry.d_model)
        self._caches = {name: np.zeros((slots, *shape), np.float32) for name, shape in shapes.items()}
        self._position = np.zeros(slots, np.int64)
        self._valid = np.zeros(slots, np.int64)
        self._left = left
        self._chunk = geometry.attention_chunk
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

    def write(self, slots: NDArray[np.int64], frames: int, new: dict[str, Float32]) -> None:
        """Store what a step of ``frames`` encoder frames returned, by the names :meth:`read` has, and advance."""
        # Streams advance in whole attention chunks, so the rings are written by the chunk: fewer, longer pieces.
        chunk, chunks = self._chunk, self._left // self._chunk
        kept = min(frames, self._left)
        first = self._position[slots][:, None] // chunk
        places = (first + np.arange((frames - kept) // chunk, frames // chunk)) % chunks
        rows, index = rows_of(slots), slots[:, None]
        for name, value in new.items():
            cache = self._caches[name]
            # Advanced indices on both sides of a slice put their axes first, hence the moved chunk axis.
            if name.startswith("key"):
                pieces = value[..., -kept:].reshape(*value.shape[:4], -1, chunk)
                ring = cache.reshape(*cache.shape[:4], -1, chunk)
                ring[index, :, :, :, places] = np.moveaxis(pieces, 4, 1)
            elif name.startswith("value"):
                pieces = value[..., -kept:, :].reshape(*value.shape[:3], -1, chunk, value.shape[4])
                ring = cache.reshape(*cache.shape[:3], -1, chunk, cache.shape[4])
                ring[index, :, :, places] = np.moveaxis(pieces, 3, 1)
            else:
                cache[rows] = value
        self._position[slots] = (self._position[slots] + frames) % self._left
        self._valid[slots] = np.minimum(self._valid[slots] + frames, self._left)

    def _thread_scratch(self, rows: int) -> dict[str, Float32]:
        """Memory for copies of ``rows`` rows of every cache, kept by the thread that uses it."""
        held: tuple[int, dict[str, Float32]] = getattr(self._scratch, "held", (0, {}))
        if held[0] < rows:
            arrays = {
                name: np.empty((rows, *cache.shape[1:]), np.float32) for name, cache in self._caches.items()
            }
            held = self._scratch.held = (rows, arrays)
        return held[1]
