"""The way in of a session: samples and commands in their order, cut into the mel steps of the model.

A flush lets the model hear silence behind the client's audio, until the session says that it has heard enough. The
timeline takes that silence out of all times again.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile

import numpy as np

from parakeet_live.audio.mel import StreamingMel
from parakeet_live.session.endpoint_config import EndpointingConfig
from parakeet_live.session.flush import Flush
from parakeet_live.session.timeline import Timeline
from parakeet_live.session.voice import VoiceMonitor
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import Float32, MelParameters


class Intake:
    """Owns the queue of one stream, its mel front end and its clock. Positions are samples the model has heard."""

    def __init__(self, mel: MelParameters, live_frames: int, voice: VoiceMonitor | None) -> None:
        self._bins = mel.bins
        self._live_frames = live_frames
        self._mel = StreamingMel(mel)
        self._voice = voice
        self._last_mel: Float32 | None = None
        self._queue: deque[Float32 | EndpointingConfig | Flush] = deque()
        self._queued = 0
        """Samples in the queue before its first flush."""
        self._flushes = 0
        """Flushes in the queue."""
        self._flushed = 0
        """Client samples that a flush has covered."""
        self.timeline = Timeline()
        self.received = 0
        """Client samples received."""
        self.taken = 0
        """Client samples handed to the front end, or dropped."""
        self.flush: Flush | None = None
        """The flush that runs."""
        self.flush_start = 0
        """Position at which its silence begins."""
        self.flush_silence = 0
        """Samples of silence heard in it."""
        self._configs: deque[tuple[int, EndpointingConfig]] = deque()
        """Numbers that hold from a position on, in order."""

    @property
    def all_flushed(self) -> bool:
        """True if the model was handed nothing since the last flush."""
        return self.taken == self._flushed

    def push(self, samples: Float32) -> None:
        """Append client samples."""
        self.received += len(samples)
        self._queue.append(samples)
        if not self._flushes:
            self._queued += len(samples)

    def configure(self, config: EndpointingConfig) -> None:
        """Numbers that hold for the audio from here on."""
        self._queue.append(config)

    def config_before(self, position: int) -> EndpointingConfig | None:
        """Take the next numbers that hold from before ``position`` on; None if there are no more."""
        if self._configs and self._configs[0][0] < position:
            return self._configs.popleft()[1]
        return None

    def request(self, flush: Flush) -> None:
        """Flush what came before."""
        self._queue.append(flush)
        self._flushes += 1

    def next_flush(self) -> Flush | None:
        """Take the flush at the head of the queue, if there is one and the model has nothing left to say for it."""
        if self.flush is not None or not self.all_flushed:
            return None
        while self._queue and isinstance(head := self._queue[0], EndpointingConfig | Flush):
            self._queue.popleft()
            if isinstance(head, Flush):
                self._took_flush()
                return head
            self._configs.append((self._mel.pushed, head))
        return None

    def cancel(self) -> int:
        """Drop everything that the model has not heard, and flush the rest; returns the finalize requests dropped.

        Times go on as if the dropped audio had been heard.
        """
        finalizes = int(self.flush is Flush.FINALIZE)
        dropped = 0
        for item in self._queue:
            if isinstance(item, EndpointingConfig):
                self._configs.append((self._mel.pushed, item))
            elif isinstance(item, Flush):
                finalizes += item is Flush.FINALIZE
            else:
                dropped += len(item)
        self._queue.clear()
        self._queued = self._flushes = 0
        if self.flush is not None:
            self.flush = Flush.CANCEL
        elif dropped or not self.all_flushed:
            # Even if the model heard none of it: a step that was ready stays ready.
            self._begin(Flush.CANCEL)
        self.timeline.skip(self._mel.pushed, dropped)
        self.taken += dropped
        return finalizes

    @property
    def ready_frames(self) -> int:
        """Encoder frames that the next step may have at most; 0 if none is ready."""
        if self.flush is not None:
            # Only so much silence at once, however much audio waits behind: the flush ends when the model has ended.
            return self._live_frames
        mel_frames = self._mel.available_after(self._queued)
        if self._last_mel is None:
            mel_frames += SUBSAMPLING_FACTOR - 1
        frames = mel_frames // SUBSAMPLING_FACTOR // self._live_frames * self._live_frames
        if frames == 0 and self._flushes:
            return self._live_frames
        return frames

    def read(self, frames: int) -> tuple[Float32, int]:
        """Mel of the next step, float32[8 * frames + 1, bins], and how many padding frames it begins with."""
        first = self._last_mel is None
        wanted = SUBSAMPLING_FACTOR * frames - (SUBSAMPLING_FACTOR - 1 if first else 0)
        while (missing := self._mel.missing(wanted)) > 0:
            self._gather(missing)
        new = self._mel.read(wanted)
        head = self._last_mel
        if head is None:
            head = np.zeros((SUBSAMPLING_FACTOR, self._bins), np.float32)
        self._last_mel = new[-1:]
        return np.concatenate([head, new]), SUBSAMPLING_FACTOR if first else 0

    def finish_flush(self) -> None:
        """The model has heard enough silence."""
        self.flush = None
        self._flushed = self.taken

    def _gather(self, missing: int) -> None:
        """Feed the front end with at most ``missing`` samples."""
        if self.flush is not None:
            self.timeline.insert(self._mel.pushed, missing)
            self._hear(np.zeros(missing, np.float32))
            self.flush_silence += missing
            return
        item = self._queue.popleft()
        if isinstance(item, EndpointingConfig):
            self._configs.append((self._mel.pushed, item))
        elif isinstance(item, Flush):
            self._took_flush()
            self._begin(item)
        else:
            if len(item) > missing:
                self._queue.appendleft(item[missing:])
                item = item[:missing]
            self._queued -= len(item)
            self.taken += len(item)
            self._hear(item)

    def _hear(self, samples: Float32) -> None:
        self._mel.push(samples)
        if self._voice is not None:
            self._voice.push(samples)

    def _begin(self, flush: Flush) -> None:
        self.flush, self.flush_silence, self.flush_start = flush, 0, self._mel.pushed

    def _took_flush(self) -> None:
        self._flushes -= 1
        ahead = takewhile(lambda item: not isinstance(item, Flush), self._queue)
        self._queued = sum(len(item) for item in ahead if isinstance(item, np.ndarray))
