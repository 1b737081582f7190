"""What a client may say about a stream, in the query of the URL or in ``configure``, under the same names."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parakeet_live.dialects.quoting import shown
from parakeet_live.session.endpoint_config import PRESETS, EndpointingConfig, Preset

LONGEST_SILENCE_MS = 60_000
"""Longest silence to wait for. Longer turns are ended by the client, with ``finalize``."""


class EndpointingOptions(BaseModel):
    """When an utterance ends. What is not stated stays as it is; a preset states all numbers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    endpointing: Preset | None = Field(
        default=None, description="Numbers for a kind of speech; those beside it take precedence."
    )
    eou_silence_ms: int | None = Field(
        default=None,
        ge=0,
        le=LONGEST_SILENCE_MS,
        description="After the model's end of utterance: audio since the last token before the final.",
    )
    eou_hold_ms: int | None = Field(
        default=None,
        ge=0,
        le=LONGEST_SILENCE_MS,
        description="How much longer that may take while a voice is heard.",
    )
    silence_ms: int | None = Field(
        default=None,
        ge=0,
        le=LONGEST_SILENCE_MS,
        description="Without an end of utterance: audio since the last token before the final.",
    )
    silence_hold_ms: int | None = Field(
        default=None,
        ge=0,
        le=LONGEST_SILENCE_MS,
        description="How much longer that may take while a voice is heard.",
    )
    max_utterance_ms: int | None = Field(
        default=None,
        ge=1_000,
        le=600_000,
        description="Length from which an utterance ends where its next word begins.",
    )
    no_audio_ms: int | None = Field(
        default=None,
        ge=500,
        le=600_000,
        description="Wall-clock time without audio after which what is pending becomes a final.",
    )
    vad: bool | None = Field(
        default=None, description="Whether a voice detector may put a final off while it hears a voice."
    )
    speech_started: bool | None = Field(
        default=None, description="Whether `speech_started` is sent when a voice is heard."
    )

    def applied_to(self, config: EndpointingConfig) -> EndpointingConfig:
        """``config`` with what is stated here."""
        if self.endpointing is not None:
            config = PRESETS[self.endpointing]
        stated = {name: value for name in _NUMBERS if (value := getattr(self, name)) is not None}
        return replace(config, **stated)


class StreamOptions(EndpointingOptions):
    """Everything beside the audio: when an utterance ends, and how finals are made readable."""

    format: str | None = Field(
        default=None,
        max_length=400,
        description="Formatters of finals, separated by commas; an empty string for none.",
        examples=["numerals,punctuation"],
    )


_NUMBERS = [name for name in EndpointingOptions.model_fields if name != "endpointing"]


class Endpointing(BaseModel):
    """The numbers in force."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    preset: Preset = Field(
        description="Where the numbers came from; single ones may have been changed since."
    )
    eou_silence_ms: int
    eou_hold_ms: int
    silence_ms: int
    silence_hold_ms: int
    max_utterance_ms: int
    no_audio_ms: int
    vad: bool
    speech_started: bool

    @classmethod
    def of(cls, config: EndpointingConfig) -> Self:
        return cls(**asdict(config))


def explained(error: ValidationError) -> str:
    """What is wrong with the first bad option, and what is possible."""
    first = error.errors(include_url=False)[0]
    name, value = first["loc"][-1], first["input"]
    return f"{name}={shown(str(value))} is not possible: {first['msg'][0].lower()}{first['msg'][1:]}"
