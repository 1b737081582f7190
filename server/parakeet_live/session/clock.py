"""Encoder frames to times: the one place that knows how much audio a frame has heard. Integers, so nothing drifts."""

from __future__ import annotations

from parakeet_live.session.timeline import Timeline
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.mel import MelParameters


class FrameClock:
    """Frames are encoder frames of the whole stream; positions are samples the model has heard."""

    def __init__(self, mel: MelParameters, timeline: Timeline) -> None:
        self._rate = mel.sample_rate
        self._look_ahead = mel.window_length // 2
        self._timeline = timeline
        self.frame_samples = SUBSAMPLING_FACTOR * mel.hop_length
        """Samples of an encoder frame."""

    @property
    def frame_ms(self) -> int:
        """Audio of an encoder frame."""
        return self.milliseconds(self.frame_samples)

    def heard(self, frame: int) -> int:
        """Position up to which ``frame`` has heard: the middle of its last mel frame and half a window."""
        return frame * self.frame_samples + self._look_ahead

    def begin_ms(self, frame: int) -> int:
        """The client's time at which ``frame`` begins, which is where the frame before it ends."""
        return self.milliseconds(self._timeline.client_position(max(0, self.heard(frame - 1))))

    def milliseconds(self, samples: int) -> int:
        """Length of so many samples."""
        return samples * 1000 // self._rate
