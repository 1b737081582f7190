"""The network in a worker process: models and the state of every slot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.coreml.options import ENCODER_UNITS, CoremlOptions
from parakeet_live.engine.greedy import GreedyDecoder
from parakeet_models.bundle import Bundle
from parakeet_models.coreml_runtime import OpenModel, autorelease_pool
from parakeet_models.coreml_stream import EncoderStream, open_decoder, open_encoders
from parakeet_models.frames import SUBSAMPLING_FACTOR, valid_frames

WARM_UP_STEPS = 5
"""Steps of each size: the first one of any size allocates."""

Report = Callable[[str], None]


class CoremlNetwork:
    """Runs steps one after the other; one thread."""

    def __init__(
        self, bundle: Bundle, slots: int, options: CoremlOptions, open_model: OpenModel, report: Report
    ) -> None:
        """Load, warm up and test. Raises EngineError if the models do not compute what can be right."""
        self._manifest = bundle.manifest
        self._state = bundle.packages.state
        self._units = options.encoder or ENCODER_UNITS
        with _timed(f"encoder on {self._units}", report):
            self._encoders = open_encoders(bundle, open_model, self._units)
        with _timed(f"prediction network on {options.prediction}, joint on {options.joint}", report):
            networks = open_decoder(bundle, open_model, options.prediction, options.joint)
        with autorelease_pool():
            self._decoder = GreedyDecoder(networks, self._manifest.geometry, self._manifest.tokens, slots)
        self._streams: dict[int, EncoderStream] = {}
        self.summary = self._test()

    def step(self, step: StepInput, fresh: bool) -> list[Emission]:
        """One step of one stream; ``fresh`` if it is the first of another stream on the slot."""
        with autorelease_pool():
            if fresh:
                self._stream(step.slot).reset()
            if fresh or step.restart:
                self._decoder.restart(step.slot)
            encoded = self._streams[step.slot].step(step.mel, step.begin, step.end)
            frames = np.array([valid_frames(step.end)])
            return self._decoder.decode(np.array([step.slot]), encoded[None], frames)[0]

    def _stream(self, slot: int) -> EncoderStream:
        """The stream on a slot; memory is taken by the first one."""
        if slot not in self._streams:
            self._streams[slot] = EncoderStream(self._manifest.geometry, self._state, self._encoders)
        return self._streams[slot]

    def _test(self) -> str:
        """One stream in steps of all sizes, the first size again at last: that they share their state, that numbers
        are numbers, and how long a live step takes.
        """
        stream = EncoderStream(self._manifest.geometry, self._state, self._encoders)
        bins = self._manifest.mel.bins
        seconds: dict[int, float] = {}
        for frames in (*self._encoders, next(iter(self._encoders))):
            # About as loud as speech, so that nothing is skipped.
            mel = np.random.default_rng(frames).normal(-8.0, 3.0, (SUBSAMPLING_FACTOR * frames + 1, bins))
            for _ in range(WARM_UP_STEPS):
                started = time.perf_counter()
                with autorelease_pool():
                    encoded = stream.step(mel.astype(np.float32), 0, len(mel))
                seconds[frames] = min(seconds.get(frames, np.inf), time.perf_counter() - started)
                if not np.isfinite(encoded).all() or not encoded.any():
                    raise EngineError(
                        f"the encoder does not compute on {self._units}: its output has no usable numbers; "
                        "choose other processors for it"
                    )
        frame_seconds = SUBSAMPLING_FACTOR * self._manifest.mel.hop_length / self._manifest.mel.sample_rate
        return "; ".join(
            f"{frames} frames in {1000 * best:.1f} ms ({frames * frame_seconds / best:.0f} x real time)"
            for frames, best in seconds.items()
        )


@contextmanager
def _timed(what: str, report: Report) -> Iterator[None]:
    report(f"loading {what}")
    started = time.perf_counter()
    yield
    report(f"loaded {what} in {time.perf_counter() - started:.1f} s")
