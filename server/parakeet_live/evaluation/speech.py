"""Where the speech of a recording begins and ends, by its level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BELOW_PEAK_DB = 30.0
"""Sound within this of the recording's loudest moments counts as speech; the rest is breath, room or line noise."""
WINDOW_MS = 10
PEAK_WINDOWS = 5
"""The level of the loudest moments is reached by this many windows, so that a click does not set it."""
SHORTEST_SOUND_MS = 30
"""Shorter sound that stands alone is a click or a crackle."""
CLOSURE_MS = 100
"""Silence inside a word, before the burst of a plosive, is shorter than this."""


def speech_runs(samples: NDArray[np.float32], rate: int, longest_gap_ms: int) -> list[tuple[int, int]]:
    """Stretches of speech as (begin, end) in milliseconds, ascending; gaps up to ``longest_gap_ms`` are inside one.

    ``samples``: float32[n] at ``rate`` Hz. The power of windows of 10 ms is compared with one threshold, 30 dB below
    the recording's loudest moments; sound of less than 30 ms that stands alone is left out. Noise in the recording
    must be lower than the threshold.
    """
    window = rate * WINDOW_MS // 1000
    count = -(-len(samples) // window)
    if count == 0:
        return []
    padded = np.zeros(count * window, dtype=np.float64)
    padded[: len(samples)] = samples
    power = np.mean(padded.reshape(count, window) ** 2, axis=1)
    loudest = np.sort(power)[-min(PEAK_WINDOWS, count)]
    loud = (power >= loudest * 10 ** (-BELOW_PEAK_DB / 10)) & (power > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    runs: list[tuple[int, int]] = []
    for first, after in edges.reshape(-1, 2).tolist():
        begin, end = first * WINDOW_MS, min(after * WINDOW_MS, len(samples) * 1000 // rate)
        if runs and begin - runs[-1][1] <= longest_gap_ms:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return [(begin, end) for begin, end in runs if end - begin >= SHORTEST_SOUND_MS]


def speech_end_ms(samples: NDArray[np.float32], rate: int) -> int:
    """End of the last stretch of speech in milliseconds; 0 for a silent recording. ``samples``: float32[n]."""
    runs = speech_runs(samples, rate, longest_gap_ms=CLOSURE_MS)
    return runs[-1][1] if runs else 0
