"""The engines under comparison behind one interface: 160 ms of samples for every stream in, decoded tokens out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from parakeet_live.engine.onnx import OnnxBackend
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_models.bundle import Bundle
from parakeet_models.mel import Float32

LEAD_SAMPLES = 4_000
"""Silence before the first step, so that every later 160 ms complete exactly one window of sherpa-onnx's."""


class Engine(Protocol):
    """One engine with its network loaded."""

    def open(self, streams: int) -> None:
        """Forget all streams and begin new ones."""
        ...

    def step(self, audio: Sequence[Float32]) -> int:
        """Take float32[2560] at 16 kHz for every stream and decode all that is ready; returns steps per stream."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens emitted by all streams since :meth:`open`."""
        ...


class OurEngine:
    """Sessions and the ONNX backend, as the server uses them, without its sockets and scheduler."""

    def __init__(self, bundle: Bundle, most_streams: int) -> None:
        self._manifest = bundle.manifest
        self._vocabulary = Vocabulary.load(bundle)
        self._backend = OnnxBackend(bundle, most_streams)
        self._streams: list[tuple[int, Session]] = []
        self._frames = bundle.manifest.step_sizes[0]
        self.tokens = 0

    def open(self, streams: int) -> None:
        for slot, _ in self._streams:
            self._backend.close(slot)
        self._streams = [
            (self._backend.open(), Session(self._manifest, self._vocabulary)) for _ in range(streams)
        ]
        self.tokens = 0

    def step(self, audio: Sequence[Float32]) -> int:
        for (_, session), samples in zip(self._streams, audio, strict=True):
            session.push(samples)
        steps = 0
        while all(session.ready_frames for _, session in self._streams):
            inputs = [session.next_step(slot, self._frames) for slot, session in self._streams]
            for (_, session), emissions in zip(self._streams, self._backend.step(inputs), strict=True):
                self.tokens += len(emissions)
                session.apply(emissions)
            steps += 1
        return steps


class SherpaEngine:
    """sherpa-onnx's recognizer; all streams that are ready decoded in one call."""

    def __init__(self, encoder: Path, mel_bins: int) -> None:
        import sherpa_onnx

        directory = encoder.parent
        self._recognizer: Any = sherpa_onnx.OnlineRecognizer.from_transducer(
            tokens=str(directory / "tokens.txt"),
            encoder=str(encoder),
            decoder=str(directory / "decoder.onnx"),
            joiner=str(directory / "joiner.onnx"),
            num_threads=1,
            feature_dim=mel_bins,
            decoding_method="greedy_search",
        )
        self._streams: list[Any] = []

    def open(self, streams: int) -> None:
        self._streams = [self._recognizer.create_stream() for _ in range(streams)]
        for stream in self._streams:
            stream.accept_waveform(16_000, np.zeros(LEAD_SAMPLES, np.float32))

    def step(self, audio: Sequence[Float32]) -> int:
        for stream, samples in zip(self._streams, audio, strict=True):
            stream.accept_waveform(16_000, samples)
        steps = 0
        while all(self._recognizer.is_ready(stream) for stream in self._streams):
            self._recognizer.decode_streams(self._streams)
            steps += 1
        return steps

    @property
    def tokens(self) -> int:
        return sum(len(self._recognizer.tokens(stream)) for stream in self._streams)
