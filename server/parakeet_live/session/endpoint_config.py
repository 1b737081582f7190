"""When a turn ends, in numbers: the presets, and what a connection may set. docs/endpointing.md explains them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Preset(StrEnum):
    """Sets of numbers for a kind of speech."""

    CONVERSATION = "conversation"
    """Talk between people or with a machine: quick answers, short thinking pauses."""
    DICTATION = "dictation"
    """One speaker who thinks between sentences."""
    TELEPHONE_DIGITS = "telephone_digits"
    """Numbers read out in groups."""
    COMMAND = "command"
    """Single commands: the answer counts, not what may follow."""


@dataclass(frozen=True, slots=True)
class EndpointingConfig:
    """Numbers of one stream, in milliseconds of audio time unless said otherwise."""

    preset: Preset
    """Where the numbers came from; single ones may have been changed since."""
    eou_silence_ms: int
    """After the model's end of utterance: audio since the last token before the commit."""
    eou_hold_ms: int
    """How much longer that may take while the voice detector hears a voice: a word whose token is still to come."""
    silence_ms: int
    """Without an end of utterance: audio since the last token before the commit; never less than after one."""
    silence_hold_ms: int
    """How much longer that may take while the voice detector hears a voice; a noise taken for one ends here."""
    max_utterance_ms: int
    """Audio since an utterance's first token from which the next word begins a new utterance."""
    no_audio_ms: int
    """Wall-clock time without audio from the client after which what is pending is committed."""
    vad: bool = True
    """Whether the voice detector is asked. It can put a commit off; it never keeps audio from the recogniser."""
    speech_started: bool = False
    """Whether the beginning of speech is reported. The voice detector then also listens between utterances."""


# Measured on pauses inside utterances with `parakeet-live eval --endpointing`; docs/endpointing.md has the figures.
PRESETS = {
    config.preset: config
    for config in (
        EndpointingConfig(
            Preset.CONVERSATION,
            eou_silence_ms=640,
            eou_hold_ms=1_280,
            silence_ms=1_200,
            silence_hold_ms=1_600,
            max_utterance_ms=30_000,
            no_audio_ms=3_200,
        ),
        EndpointingConfig(
            Preset.DICTATION,
            eou_silence_ms=2_000,
            eou_hold_ms=960,
            silence_ms=2_400,
            silence_hold_ms=960,
            max_utterance_ms=60_000,
            no_audio_ms=4_400,
        ),
        EndpointingConfig(
            Preset.TELEPHONE_DIGITS,
            eou_silence_ms=1_360,
            eou_hold_ms=960,
            silence_ms=1_800,
            silence_hold_ms=1_600,
            max_utterance_ms=30_000,
            no_audio_ms=3_800,
        ),
        EndpointingConfig(
            Preset.COMMAND,
            eou_silence_ms=400,
            eou_hold_ms=480,
            silence_ms=800,
            silence_hold_ms=2_000,
            max_utterance_ms=15_000,
            no_audio_ms=2_800,
        ),
    )
}
DEFAULT = PRESETS[Preset.CONVERSATION]
