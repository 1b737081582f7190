"""Arithmetic between mel frames (10 ms) and encoder frames (80 ms): one definition for the network and the runtime."""

from __future__ import annotations

from typing import Any

SUBSAMPLING_FACTOR = 8
"""Mel frames per encoder frame: three stride-2 stages. Fixed by the architecture."""


def subsampled_length(mel_frames: int) -> int:
    """Encoder frames of a whole signal of ``mel_frames`` mel frames: three times n -> n // 2 + 1."""
    length = mel_frames
    for _ in range(3):
        length = length // 2 + 1
    return length


def valid_frames(end: Any) -> Any:
    """Encoder frames of a step that depend on valid mel frames only: integers of any shape, NumPy or PyTorch.

    ``end`` is one past the step's last valid mel frame, as in ``network.streaming.StreamingEncoder.forward``.
    """
    return ((end // 2 + 1) // 2 + 1) // 2
