"""What the bytes of a stream are: encodings, their decoding to float, and the recognition of containers.

Everything behind this package sees one thing only: mono float32 samples at 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

import numpy as np

from parakeet_models.mel import Float32

TARGET_RATE = 16_000
"""Samples per second that the recogniser takes."""
MIN_RATE = 8_000
MAX_RATE = 192_000
MAX_CHANNELS = 8

FFMPEG_REMEDY = (
    "convert it first, for example: ffmpeg -i INPUT -f s16le -ac 1 -ar 16000 - (raw 16-bit PCM, mono, 16 kHz)"
)


class AudioProblem(StrEnum):
    """Why audio is refused."""

    UNSUPPORTED_CONTAINER = "unsupported_container"
    UNSUPPORTED_WAV = "unsupported_wav"
    FORMAT_MISMATCH = "format_mismatch"


class AudioError(ValueError):
    """The bytes cannot be taken as audio; the message names the remedy."""

    def __init__(self, problem: AudioProblem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


class Encoding(StrEnum):
    """Sample encodings of raw audio; everything is little-endian."""

    PCM_S16LE = "pcm_s16le"
    PCM_F32LE = "pcm_f32le"
    MULAW = "mulaw"
    ALAW = "alaw"

    @property
    def bytes_per_sample(self) -> int:
        return {Encoding.PCM_S16LE: 2, Encoding.PCM_F32LE: 4}.get(self, 1)


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """A complete description of raw interleaved audio."""

    encoding: Encoding = Encoding.PCM_S16LE
    sample_rate: int = TARGET_RATE
    channels: int = 1

    @property
    def bytes_per_frame(self) -> int:
        """Bytes of one sample of all channels."""
        return self.encoding.bytes_per_sample * self.channels

    def __str__(self) -> str:
        return f"{self.encoding} {self.sample_rate} Hz, {self.channels} channel{'s' * (self.channels > 1)}"


@dataclass(frozen=True, slots=True)
class DeclaredFormat:
    """What a client stated about its audio; None is "not stated" and may be filled in by a WAV header."""

    encoding: Encoding | None = None
    sample_rate: int | None = None
    channels: int | None = None

    def resolve(self) -> AudioFormat:
        """The format of raw audio without a header: what was stated, defaults for the rest."""
        return self.merge(AudioFormat())

    def merge(self, other: AudioFormat) -> AudioFormat:
        """What was stated, with ``other`` for the rest."""
        return AudioFormat(
            other.encoding if self.encoding is None else self.encoding,
            other.sample_rate if self.sample_rate is None else self.sample_rate,
            other.channels if self.channels is None else self.channels,
        )


def _mulaw_table() -> Float32:
    """ITU-T G.711 mu-law: float32[256], full scale 32124 / 32768."""
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = ((((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return (np.where(code & 0x80, -magnitude, magnitude) / 32768.0).astype(np.float32)


def _alaw_table() -> Float32:
    """ITU-T G.711 A-law: float32[256], full scale 32256 / 32768."""
    code = np.arange(256, dtype=np.int32) ^ 0x55
    mantissa, segment = (code & 0x0F) << 4, (code & 0x70) >> 4
    magnitude = np.where(segment == 0, mantissa + 8, (mantissa + 0x108) << np.maximum(segment - 1, 0))
    return (np.where(code & 0x80, magnitude, -magnitude) / 32768.0).astype(np.float32)


_G711 = {Encoding.MULAW: _mulaw_table(), Encoding.ALAW: _alaw_table()}


def to_mono(data: bytes, audio: AudioFormat) -> Float32:
    """Whole frames of raw audio to mono: bytes[n * bytes_per_frame] -> float32[n] in [-1, 1].

    Channels are mixed by their mean. They are added one after the other, not by a NumPy reduction, whose
    order of summation may depend on how many frames there are: the same bytes must give the same bits
    however they were cut.
    """
    if audio.encoding is Encoding.PCM_S16LE:
        samples = np.frombuffer(data, "<i2").astype(np.float32) * np.float32(1 / 32768)
    elif audio.encoding is Encoding.PCM_F32LE:
        # NaN and infinity become silence; a single one would otherwise poison every cache of the stream.
        samples = np.frombuffer(data, "<f4").astype(np.float32)
        samples = np.clip(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
    else:
        samples = _G711[audio.encoding][np.frombuffer(data, np.uint8)]
    if audio.channels == 1:
        return samples
    frames = samples.reshape(-1, audio.channels)
    mono = frames[:, 0].copy()
    for channel in range(1, audio.channels):
        mono += frames[:, channel]
    return mono * np.float32(1 / audio.channels)


class Content(Enum):
    """What the first bytes of a stream look like; the value is the name people know it by."""

    UNDECIDED = "undecided"
    RAW = "raw audio"
    WAV = "WAV"
    WEBM = "WebM/Matroska"
    OGG = "Ogg"
    FLAC = "FLAC"
    MP3 = "MP3"
    MP4 = "MP4/M4A"
    AIFF = "AIFF"
    CAF = "CAF"
    AU = "AU"


_ANY = None


def _pattern(*parts: bytes | int) -> tuple[int | None, ...]:
    """Bytes to be matched; an integer stands for that many arbitrary bytes."""
    out: list[int | None] = []
    for part in parts:
        out.extend([_ANY] * part if isinstance(part, int) else part)
    return tuple(out)


_MAGIC: tuple[tuple[Content, tuple[int | None, ...]], ...] = (
    (Content.WAV, _pattern(b"RIFF", 4, b"WAVE")),
    (Content.WAV, _pattern(b"RF64", 4, b"WAVE")),
    (Content.WEBM, _pattern(b"\x1aE\xdf\xa3")),
    (Content.OGG, _pattern(b"OggS")),
    (Content.FLAC, _pattern(b"fLaC")),
    (Content.MP3, _pattern(b"ID3\x02\x00")),
    (Content.MP3, _pattern(b"ID3\x03\x00")),
    (Content.MP3, _pattern(b"ID3\x04\x00")),
    (Content.MP4, _pattern(b"\x00\x00", 2, b"ftyp")),
    (Content.AIFF, _pattern(b"FORM", 4, b"AIF")),
    (Content.CAF, _pattern(b"caff\x00\x01")),
    (Content.AU, _pattern(b".snd\x00\x00\x00")),
)


def _mp3_frame_length(header: bytes) -> int | None:
    """Length in bytes of the MPEG layer III frame that begins with these four bytes, or None if none does."""
    word = int.from_bytes(header[:4], "big")
    version, layer, bitrate, rate = word >> 19 & 3, word >> 17 & 3, word >> 12 & 15, word >> 10 & 3
    if word >> 21 != 0x7FF or version == 1 or layer != 1 or bitrate in (0, 15) or rate == 3:
        return None
    first = version == 3  # MPEG-1; the others are the half and quarter rates of MPEG-2 and 2.5
    kilobits = (
        (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
        if first
        else (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
    )[bitrate - 1]
    hertz = (44_100, 48_000, 32_000)[rate] // {3: 1, 2: 2, 0: 4}[version]
    return (144 if first else 72) * kilobits * 1000 // hertz + (word >> 9 & 1)


def _sniff_mp3(head: bytes) -> Content:
    """MP3 without a tag. Its sync word is an ordinary sample in PCM, so two frames must follow on."""
    if head[0] != 0xFF or (len(head) > 1 and head[1] & 0xE6 != 0xE2):
        return Content.RAW
    if len(head) < 4:
        return Content.UNDECIDED
    length = _mp3_frame_length(head)
    if length is None:
        return Content.RAW
    second = head[length : length + 4]
    if len(second) < 4:
        return Content.UNDECIDED
    same_kind = second[0] == head[0] and second[1] == head[1] and (second[2] ^ head[2]) & 0x0C == 0
    return Content.MP3 if same_kind and _mp3_frame_length(second) else Content.RAW


def sniff(head: bytes) -> Content:
    """Recognise a stream by its first bytes; ``UNDECIDED`` only while they may become a known beginning.

    Ordinary audio is decided after a byte or two; the longest wait is one MP3 frame (at most 1441 bytes + 4).
    """
    if not head:
        return Content.UNDECIDED
    undecided = False
    for content, pattern in _MAGIC:
        if all(want is _ANY or want == have for want, have in zip(pattern, head, strict=False)):
            if len(head) >= len(pattern):
                return content
            undecided = True
    return Content.UNDECIDED if undecided else _sniff_mp3(head)
