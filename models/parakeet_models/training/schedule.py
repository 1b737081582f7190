"""What changes while training goes on, as functions of the share of the time that has passed (0 to 1).

The order matters more than the values: without the frame-level warm start on clean single utterances the RNN-T
loss falls although nothing but silence and word order is learned, and with all distortions from the start the
warm start stalls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .streams import EASY, Difficulty


@dataclass(frozen=True)
class Schedule:
    """All shares are of the whole training time."""

    learning_rate: float = 1.5e-3
    warmup_steps: int = 150
    frame_only_until: float = 0.07
    """Frame-level cross entropy alone."""
    frame_gone_at: float = 0.2
    """Its weight falls from 0.5 to 0 until here."""
    ramp_from: float = 0.085
    ramp_to: float = 0.25
    """Distortions, lengths and numbers of utterances rise between these two."""
    top_level: float = 0.85
    ease_from: float = 0.75
    final_level: float = 0.6
    """The last quarter is less distorted, so that the last, small steps fit what most callers sound like."""
    ctc_weight: float = 0.3

    def rate(self, progress: float, step: int) -> float:
        """Learning rate: linear warm-up in steps, then a cosine to 2 %."""
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        return self.learning_rate * min(1.0, (step + 1) / self.warmup_steps) * (0.02 + 0.98 * cosine)

    def uses_transducer(self, progress: float) -> bool:
        """Whether the RNN-T and CTC losses take part."""
        return progress >= self.frame_only_until

    def frame_weight(self, progress: float) -> float:
        """Weight of the frame-level cross entropy."""
        if not self.uses_transducer(progress):
            return 1.0
        left = (self.frame_gone_at - progress) / (self.frame_gone_at - self.frame_only_until)
        return 0.5 * max(0.0, left)

    def difficulty(self, progress: float) -> Difficulty:
        """How hard the streams are."""
        ramp = (progress - self.ramp_from) / (self.ramp_to - self.ramp_from)
        if ramp <= 0:
            return EASY
        full = Difficulty()
        share = min(1.0, ramp)
        eased = max(0.0, (progress - self.ease_from) / (1 - self.ease_from))
        top = self.top_level + min(1.0, eased) * (self.final_level - self.top_level)
        return Difficulty(
            level=EASY.level + share * (top - EASY.level),
            max_digits=round(EASY.max_digits + share * (full.max_digits - EASY.max_digits)),
            max_utterances=round(1 + share * (full.max_utterances - 1)),
            noise_only=EASY.noise_only + share * (full.noise_only - EASY.noise_only),
            digit_share=full.digit_share,
        )
