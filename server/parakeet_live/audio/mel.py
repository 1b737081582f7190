"""Continuous streaming log-mel: the same frames as the whole signal's, however the audio is cut."""

from __future__ import annotations

import numpy as np

from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32, MelParameters, frames_to_log_mel

BLOCK_FRAMES = SUBSAMPLING_FACTOR
"""Mel frames multiplied by the filterbank at once, after a first block of one: the frames of one encoder frame.

The block is fixed, and not "whatever has arrived", because a matrix product may round differently for different
numbers of rows; so every frame is bit-equal for any fragmentation of the audio and any size of the steps.
"""


class StreamingMel:
    """Samples in, mel frames out. Mel frame k exists once ``hop * k + window / 2`` samples were pushed.

    The stream is preceded by silence; the memory of the pre-emphasis and of the overlapping windows is kept here,
    so no frame ever sees an edge that is not in the signal.
    """

    def __init__(self, parameters: MelParameters) -> None:
        self._parameters = parameters
        self._half = parameters.window_length // 2
        self._buffer = np.zeros(self._half, np.float32)
        """Pre-emphasised samples from the start of the next frame's window on."""
        self._pending: list[Float32] = []
        self._last = np.float32(0.0)
        self._pushed = 0
        self._read = 0

    @property
    def pushed(self) -> int:
        """Samples pushed so far."""
        return self._pushed

    @property
    def available(self) -> int:
        """Mel frames that can be read now."""
        return self.available_after(0)

    def available_after(self, samples: int) -> int:
        """Mel frames that could be read once ``samples`` more were pushed."""
        complete = (self._pushed + samples - self._half) // self._parameters.hop_length + 1
        return max(0, complete - self._read)

    def missing(self, frames: int) -> int:
        """Samples still to be pushed before ``frames`` mel frames can be read."""
        last = self._read + frames - 1
        return max(0, last * self._parameters.hop_length + self._half - self._pushed)

    def push(self, samples: Float32) -> None:
        """Append samples, float32[n] in [-1, 1]; n may be 0."""
        if len(samples) == 0:
            return
        previous = np.empty_like(samples)
        previous[0] = self._last
        previous[1:] = samples[:-1]
        self._pending.append(samples - np.float32(self._parameters.pre_emphasis) * previous)
        self._last = samples[-1]
        self._pushed += len(samples)

    def read(self, frames: int) -> Float32:
        """The next ``frames`` mel frames, float32[frames, bins].

        Raises:
            ValueError: if fewer are available, or if the read would end inside a block.
        """
        if frames > self.available:
            raise ValueError(f"{frames} mel frames wanted, {self.available} available")
        if frames < 1 or (self._read + frames - 1) % BLOCK_FRAMES:
            raise ValueError("mel frames are read as one first frame and then whole blocks of eight")
        self._buffer = np.concatenate([self._buffer, *self._pending])
        self._pending.clear()
        hop, width = self._parameters.hop_length, self._parameters.window_length
        # A view, made by hand: numpy's own helpers for this cost more than the transform.
        strides = (hop * self._buffer.itemsize, self._buffer.itemsize)
        windows: Float32 = np.ndarray((frames, width), np.float32, self._buffer, strides=strides)
        mel = frames_to_log_mel(windows, self._parameters, block=BLOCK_FRAMES)
        self._read += frames
        self._buffer = self._buffer[frames * hop :].copy()
        return mel
