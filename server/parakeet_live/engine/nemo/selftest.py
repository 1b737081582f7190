"""Is a published graph fit to be streamed? Asked when it is loaded, of the graph itself.

Two windows of sound on empty caches tell. The graph must remember exactly the frames by which its runtime advances
(some published ones remember more, so that their past runs ahead of the audio), these must be whole attention chunks,
and what lies in the window behind them must not matter.
"""

from __future__ import annotations

import numpy as np

from parakeet_live.engine.backend import EngineError, StepInput
from parakeet_live.engine.nemo.encoder import PAST, SILENCE, Caches, WindowedEncoder
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts.layout import ATTENTION_CHUNK, Layout
from parakeet_models.mel import Float32

FRAME_MS = 80
TOLERANCE = 0.01
"""Largest difference, relative to the peak, between what must be equal: half precision is a tenth of it."""


class CadenceError(EngineError):
    """The graph cannot be streamed exactly, whatever runs it; the message names what to use instead."""


def check_cadence(layout: Layout, encoder: WindowedEncoder) -> None:
    """Run the graph twice.

    Raises:
        CadenceError: naming what is wrong with the graph and what to use instead.
    """
    path, hop = layout.encoder.path, layout.hop
    used = PAST + SUBSAMPLING_FACTOR * (hop - 1) + 1
    """Mel frames of the window up to the one that the last kept frame sits on."""

    def refuse(reason: str) -> CadenceError:
        return CadenceError(f"{path}: {reason}. Instead, {layout.remedy}")

    if layout.window_frames < used:
        raise refuse(
            f"its window of {layout.window_frames} mel frames is too short to advance by {hop} encoder frames, "
            f"which need {used}"
        )
    random = np.random.default_rng(0)
    window = random.normal(-8.0, 3.0, (layout.window_frames, encoder.bins)).astype(np.float32)
    frames, caches = encoder.call(window, len(window), encoder.empty_caches())
    remembered = int(caches.valid.ravel()[0])
    if remembered != hop:
        raise refuse(
            f"it remembers {remembered} encoder frames of a step ({FRAME_MS * remembered} ms) but advances by {hop} "
            f"({FRAME_MS * hop} ms), so what it takes for the past would not be what was said"
        )
    if hop % ATTENTION_CHUNK:
        raise refuse(
            f"it advances by {hop} encoder frames, which breaks the network's attention chunks of {ATTENTION_CHUNK}"
        )
    if len(frames) < hop or not np.isfinite(frames).all():
        raise refuse(
            f"it gives {len(frames)} encoder frames, or numbers that are not finite, for a step of {hop}"
        )
    other = window.copy()
    other[used:] = SILENCE
    again, other_caches = encoder.call(other, len(other), encoder.empty_caches())
    pairs = (
        (frames[:hop], again[:hop]),
        (caches.channel, other_caches.channel),
        (caches.time, other_caches.time),
    )
    if any(_differ(*pair) for pair in pairs):
        raise refuse(
            f"the {hop} encoder frames it keeps depend on audio behind them, which a stream does not have yet"
        )


def equal_sizes(layout: Layout, encoder: WindowedEncoder) -> tuple[int, ...]:
    """The step sizes, largest first, in which the graph computes what it computes in its own steps.

    A graph that takes windows of any length may still have the length of one in its masks or positions.
    """
    hop, *larger = layout.step_sizes
    if not larger:
        return (hop,)
    random = np.random.default_rng(1)
    mel = random.normal(-8.0, 3.0, (SUBSAMPLING_FACTOR * larger[-1] + 1, encoder.bins)).astype(np.float32)

    def run(size: int, runs: int) -> tuple[Float32, list[Caches]]:
        """Frames of a stream in equal steps, and the caches after each."""
        memory = encoder.begin()
        encoder.sizes = (size,)
        length = SUBSAMPLING_FACTOR * size
        frames, caches = [], []
        for start in range(0, length * runs, length):
            step = mel[start : start + length + 1]
            frames.append(encoder.step(StepInput(0, step, begin=0, end=len(step)), memory))
            caches.append(memory.caches)
        return np.concatenate(frames), caches

    wanted, wanted_caches = run(hop, larger[-1] // hop)

    def equal(size: int) -> bool:
        try:
            frames, (caches,) = run(size, 1)
        except Exception:  # whatever its runtime raises for a window that it does not take
            return False
        expected = wanted_caches[size // hop - 1]
        if len(frames) != size or int(caches.valid.ravel()[0]) != size:
            return False
        return not (
            _differ(wanted[:size], frames)
            or _differ(expected.channel, caches.channel)
            or _differ(expected.time, caches.time)
        )

    return (*(size for size in reversed(larger) if equal(size)), hop)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    peak = max(1e-6, float(np.abs(one).max()))
    return float(np.abs(one.astype(np.float32) - other.astype(np.float32)).max()) > TOLERANCE * peak
