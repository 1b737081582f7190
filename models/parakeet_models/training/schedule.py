"""What changes while training goes on, as functions of the CPU minutes that have passed.

The order matters more than the values: without the frame-level warm start on clean single utterances the RNN-T loss
falls although nothing but silence and word order is learned, and with all distortions from the start the warm start
stalls. Warm start and ramp take fixed times; then the rate stays constant for as long as there is time, so that a
checkpoint can go on for any number of hours, and `decay` minutes before the end it falls to almost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from .streams import EASY, FIRST, Difficulty


@dataclass(frozen=True)
class Schedule:
    """All times in CPU minutes from the start of the training."""

    end: float = 480.0
    decay: float = 40.0
    """The last minutes, in which the learning rate goes down."""
    learning_rate: float = 1.4e-3
    """Until `constant_until`, then with the inverse square root of the time: with steps of 48 to 96 seconds it was
    three times too high at 150 minutes."""
    constant_until: float = 30.0
    warmup_steps: int = 150
    few_words_until: float = 4.0
    """Digits, letters and answers alone."""
    frame_only_until: float = 24.0
    """Frame-level cross entropy of words and sounds alone."""
    frame_low_at: float = 50.0
    frame_floor: float = 0.1
    """Its weight falls from 0.5 to `frame_floor` until `frame_low_at`. With nothing left of it and of the loss of the
    sounds, the encoder forgot in 20 minutes what sounds words have in common, and the other losses stood still."""
    sound_share: float = 1.0
    sound_floor: float = 0.4
    """The loss of the sounds has this share of the frame loss's weight, and never less than the floor."""
    ramp_from: float = 26.0
    ramp_to: float = 80.0
    """Distortions, lengths and numbers of utterances rise between these two."""
    top_level: float = 0.5
    """With 0.6 the network learned more slowly, even of streams distorted by 0.6."""
    ctc_weight: float = 0.3

    def decayed(self, minutes: float) -> float:
        """Share of the decay that has passed, 0 to 1."""
        return min(1.0, max(0.0, 1 - (self.end - minutes) / self.decay))

    def rate(self, minutes: float, step: int) -> float:
        """Learning rate: linear warm-up in steps, constant, inverse square root, and at the end linear to 2 %."""
        warm = min(1.0, (step + 1) / self.warmup_steps)
        later = min(1.0, (self.constant_until / max(minutes, 1e-3)) ** 0.5)
        return self.learning_rate * warm * later * (1 - 0.98 * self.decayed(minutes))

    def uses_transducer(self, minutes: float) -> bool:
        """Whether the RNN-T and CTC losses take part."""
        return minutes >= self.frame_only_until

    def frame_weight(self, minutes: float) -> float:
        """Weight of the frame-level cross entropy."""
        if not self.uses_transducer(minutes):
            return 1.0
        left = (self.frame_low_at - minutes) / (self.frame_low_at - self.frame_only_until)
        return self.frame_floor + (0.5 - self.frame_floor) * max(0.0, left)

    def sound_weight(self, minutes: float) -> float:
        """Weight of the loss of the sounds."""
        return max(self.sound_floor, self.sound_share * self.frame_weight(minutes))

    def difficulty(self, minutes: float) -> Difficulty:
        """How hard the streams are."""
        if minutes < self.few_words_until:
            return FIRST
        share = min(1.0, (minutes - self.ramp_from) / (self.ramp_to - self.ramp_from))
        if share <= 0:
            return EASY
        full = Difficulty()
        return Difficulty(
            level=EASY.level + share * (self.top_level - EASY.level),
            max_words=round(EASY.max_words + share * (full.max_words - EASY.max_words)),
            max_utterances=round(1 + share * (full.max_utterances - 1)),
            noise_only=EASY.noise_only + share * (full.noise_only - EASY.noise_only),
            easy=1 - share,
        )
