"""Which streams the benchmark is made of: pauses, noise floors, lines, and sound without speech."""

from __future__ import annotations

from dataclasses import dataclass

from parakeet_live.evaluation.endpointing.sounds import Sound

PAUSES_MS = (0, 300, 500, 700, 1000, 1500)
"""Pauses made inside utterances; 0 joins the same words without one."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What lies under a stream."""

    sound: Sound | None = None
    """None is digital silence."""
    below_speech_db: float = 0.0
    """Signal to noise: the level of the speech (root mean square while it lasts) over that of the sound."""
    telephone: bool = False
    """Everything goes through a telephone line."""

    @property
    def name(self) -> str:
        sound = "digital silence" if self.sound is None else f"{self.sound} {self.below_speech_db:g} dB"
        return f"{sound}, telephone" if self.telephone else sound


QUIET = (Floor(), Floor(Sound.ROOM, 40), Floor(Sound.ROOM, 35, telephone=True))
"""What the streams with pauses lie on, in turn."""
FLOORS = (
    Floor(),
    *(Floor(sound, ratio) for sound in (Sound.WHITE, Sound.PINK, Sound.ROOM) for ratio in (30, 20, 10)),
    Floor(Sound.KEYBOARD, 20),
    Floor(Sound.MUSIC, 20),
    Floor(Sound.ROOM, 35, telephone=True),
    Floor(Sound.WHITE, 20, telephone=True),
)
"""Conditions of the streams without made pauses."""


@dataclass(frozen=True, slots=True)
class Background:
    """A stream without speech. The level is that of ``floor`` under speech, which is at -26 dB of full scale."""

    floor: Floor
    seconds: int
    streams: int = 1


BACKGROUNDS = (
    Background(Floor(), 600),
    Background(Floor(Sound.ROOM, 35, telephone=True), 120),
    *(Background(Floor(sound, 10), 120) for sound in (Sound.WHITE, Sound.PINK, Sound.ROOM)),
    *(Background(Floor(sound, 0), 120, streams=2) for sound in (Sound.MUSIC, Sound.KEYBOARD)),
    Background(Floor(Sound.MUSIC, 0, telephone=True), 120, streams=2),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    turns: int = 100
    """Utterances of each pause length and of each condition."""
    seed: int = 0
    pauses_ms: tuple[int, ...] = PAUSES_MS
    floors: tuple[Floor, ...] = FLOORS
    backgrounds: tuple[Background, ...] = BACKGROUNDS

    @classmethod
    def quick(cls, seed: int = 0) -> Plan:
        """A few turns of everything that matters, in seconds: shows that it works, says little about the model."""
        return cls(
            turns=6,
            seed=seed,
            pauses_ms=(0, 500),
            floors=(Floor(Sound.WHITE, 20),),
            backgrounds=(Background(Floor(), 10), Background(Floor(Sound.MUSIC, 0), 10)),
        )
