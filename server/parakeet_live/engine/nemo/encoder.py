"""Drives a NeMo-style encoder graph through a stream: windows of mel frames in, exact encoder frames out.

Such a graph drops the first two encoder frames of its window, so that every output has its 14 mel frames of past
inside the window. Frame k of the encoder sits on mel frame 8k; a window for frames k, k + 1, … therefore begins at mel
frame 8k - 16, wherever the graph wants the first of them (in ``pre_cache`` or at the head of the signal). Some graphs
have windows that reach beyond the frames they keep: attention is limited to chunks of two frames, so what is there
cannot change them. It is filled with silence here, which saves the wait for audio that would not be used; the self-test
holds the graph to it.

The caches that a graph returns are given back at the next step, except for ``new_pre_cache``: where windows overlap,
published graphs return the end of the window, which is not what lies before the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from parakeet_live.engine.backend import EngineError, StepInput
from parakeet_live.engine.nemo.graph import Array, Graph, real, shaped
from parakeet_models.frames import SUBSAMPLING_FACTOR, valid_frames
from parakeet_models.layouts.layout import DROPPED_FRAMES, Layout
from parakeet_models.mel import LOG_GUARD, Float32

SILENCE = np.float32(np.log(LOG_GUARD))
"""Log-mel of digital silence: what lies before a stream, which trained models know. 0.0 would be loud."""
PAST = SUBSAMPLING_FACTOR * DROPPED_FRAMES
"""Mel frames of the window before the one that the first encoder frame sits on."""
MOST_LAYERS = 64
"""Layers tried where a graph's file leaves their number open; it uses as many as it has."""


@dataclass(frozen=True, slots=True)
class Caches:
    """What the graph remembers of a stream, as the graph takes it."""

    channel: Array
    time: Array
    valid: Array


@dataclass(slots=True)
class EncoderMemory:
    """The encoder's state of one stream. ``mel`` float32[8, bins]: the frames before a step's first one."""

    mel: Float32
    caches: Caches


class WindowedEncoder:
    """A published encoder graph; holds no state of any stream."""

    def __init__(self, layout: Layout, graph: Graph) -> None:
        self._ports = layout.encoder.ports
        self._graph = graph
        self._layout = layout
        self.bins = layout.mel.bins
        self.sizes: tuple[int, ...] = (layout.hop,)
        """Encoder frames of one run, largest first; the self-test adds what it has found to be equal."""
        self._layers = self._ports.layers or self._count_layers()

    def begin(self) -> EncoderMemory:
        """The state of a stream that has not begun."""
        past = np.full((SUBSAMPLING_FACTOR, self.bins), SILENCE, np.float32)
        return EncoderMemory(past, self.empty_caches())

    def empty_caches(self) -> Caches:
        """Caches of a stream that has not begun."""
        return self._empty(self._layers)

    def step(self, step: StepInput, memory: EncoderMemory) -> Float32:
        """The next frames of a stream, float32[valid frames of the step, d_model]; advances ``memory``.

        Raises:
            EngineError: the step is not of the graph's cadence.
        """
        if step.frames not in self._layout.step_sizes:
            allowed = ", ".join(map(str, self._layout.step_sizes))
            raise EngineError(f"a step of {step.frames} encoder frames; this graph takes {allowed}")
        mel = step.mel
        if step.begin:
            mel = mel.copy()
            mel[: step.begin] = SILENCE
        parts: list[Float32] = []
        done = 0
        while done < step.frames and step.end - SUBSAMPLING_FACTOR * done > 1:
            frames = next(size for size in self.sizes if size <= step.frames - done)
            start = SUBSAMPLING_FACTOR * done
            piece = mel[start : start + SUBSAMPLING_FACTOR * frames + 1]
            parts.append(self._advance(piece, min(step.end - start, len(piece)), memory))
            done += frames
        return np.concatenate(parts)

    def _advance(self, mel: Float32, end: int, memory: EncoderMemory) -> Float32:
        """One run of the graph for mel float32[8n + 1, bins], valid up to ``end``."""
        frames = len(mel) // SUBSAMPLING_FACTOR
        window = np.full((self._layout.window_of(frames), self.bins), SILENCE, np.float32)
        window[:SUBSAMPLING_FACTOR] = memory.mel
        window[SUBSAMPLING_FACTOR : SUBSAMPLING_FACTOR + len(mel)] = mel
        # A stream's last step may end early; otherwise the published runtimes declare the whole window.
        valid = SUBSAMPLING_FACTOR + end if end < len(mel) else len(window)
        encoded, memory.caches = self.call(window, valid, memory.caches)
        memory.mel = mel[-1 - SUBSAMPLING_FACTOR : -1]
        return encoded[: min(frames, int(valid_frames(end)))]

    def call(self, window: Float32, valid: int, caches: Caches) -> tuple[Float32, Caches]:
        """One run of the graph: window float32[mel frames, bins], of which ``valid`` are audio.

        Returns every encoder frame that the graph gives, float32[n, d_model], and the new caches.
        """
        ports = self._ports
        inputs = self._cache_inputs(caches)
        signal = np.ascontiguousarray(window[ports.pre_frames :].T)
        inputs[ports.signal.name] = np.asarray(signal[None], ports.signal.dtype)
        inputs[ports.length.name] = shaped(ports.length, np.array(valid - ports.pre_frames))
        if ports.pre_cache is not None:
            inputs[ports.pre_cache.name] = shaped(ports.pre_cache, window[: ports.pre_frames].T)
        outputs = self._graph.run(inputs)
        return self._frames_first(outputs[ports.encoded]), self._cache_outputs(outputs)

    def _frames_first(self, encoded: Array) -> Float32:
        """[1, n, d_model] or [1, d_model, n] -> [n, d_model]."""
        frames = real(encoded)[0]
        d_model = self._ports.d_model
        return frames if frames.shape[1] == d_model and frames.shape[0] != d_model else real(frames.T)

    def _cache_inputs(self, caches: Caches) -> dict[str, Array]:
        ports = self._ports
        return {
            ports.channel.name: caches.channel,
            ports.time.name: caches.time,
            ports.valid.name: caches.valid,
        }

    def _cache_outputs(self, outputs: Mapping[str, Array]) -> Caches:
        ports = self._ports
        return Caches(
            np.ascontiguousarray(outputs[ports.new_channel], ports.channel.dtype),
            np.ascontiguousarray(outputs[ports.new_time], ports.time.dtype),
            shaped(ports.valid, outputs[ports.new_valid]),
        )

    def _empty(self, layers: int) -> Caches:
        ports = self._ports
        leading = (1, layers) if ports.batch_first else (layers, 1)

        def zeros(shape: tuple[int | None, ...], dtype: str) -> Array:
            left, right = shape[2:]
            return np.zeros((*leading, left or 1, right or 1), dtype)

        return Caches(
            zeros(ports.channel.shape, ports.channel.dtype),
            zeros(ports.time.shape, ports.time.dtype),
            shaped(ports.valid, np.array(0)),
        )

    def _count_layers(self) -> int:
        """Layers of a graph whose file does not tell: it gives back as many caches as it has."""
        window = np.full((self._layout.window_frames, self.bins), SILENCE, np.float32)
        _, caches = self.call(window, len(window), self._empty(MOST_LAYERS))
        return int(caches.channel.shape[0])
