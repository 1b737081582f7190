"""The incremental WAV reader: every kind of header, cut anywhere."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parakeet_live.audio.formats import AudioError, AudioFormat, AudioProblem, Encoding
from parakeet_live.audio.wav import WavReader, parse_fmt
from support.wav import chunk, fmt_body, riff

AUDIO = bytes(range(1, 201))
MONO = AudioFormat(Encoding.PCM_S16LE, 16_000, 1)


def read(data: bytes, size: int | None = None) -> tuple[bytes, WavReader]:
    reader = WavReader()
    step = size or len(data)
    return b"".join(reader.feed(data[at : at + step]) for at in range(0, len(data), step)), reader


PLAIN = riff(chunk(b"fmt ", fmt_body()), chunk(b"data", AUDIO))
EXTRA = riff(
    chunk(b"JUNK", bytes(27)),
    chunk(b"LIST", b"INFOISFT\x05\x00\x00\x00Lavf\x00\x00"),
    chunk(b"fmt ", fmt_body() + b"\x00\x00"),
    chunk(b"fact", bytes(4)),
    chunk(b"data", AUDIO),
    chunk(b"LIST", b"INFO" + b"words that are not audio"),
    chunk(b"id3 ", b"tag"),
)


@pytest.mark.parametrize("wav", [PLAIN, EXTRA])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 11, 12, 43, 44, 45, None])
def test_audio_is_found_however_the_file_is_cut(wav: bytes, size: int | None) -> None:
    audio, reader = read(wav, size)
    assert audio == AUDIO
    assert reader.format == MONO
    assert not reader.surplus


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_streaming_sizes_mean_until_the_end(size: int) -> None:
    wav = riff(chunk(b"fmt ", fmt_body()), b"data" + struct.pack("<I", size), AUDIO * 3)
    assert read(wav, 13)[0] == AUDIO * 3


def test_rf64_takes_its_size_from_ds64() -> None:
    ds64 = chunk(b"ds64", struct.pack("<QQQI", 0, len(AUDIO), 0, 0))
    data = b"data" + struct.pack("<I", 0xFFFFFFFF) + AUDIO
    wav = b"RF64\xff\xff\xff\xffWAVE" + ds64 + chunk(b"fmt ", fmt_body()) + data + chunk(b"LIST", b"INFO")
    assert read(wav, 5)[0] == AUDIO


def test_odd_chunks_are_padded_or_not() -> None:
    odd = AUDIO[:-1]
    padded = riff(chunk(b"fmt ", fmt_body(7, 1, 8000, 8)), chunk(b"data", odd), chunk(b"LIST", b"INFO"))
    unpadded = riff(
        chunk(b"fmt ", fmt_body(7, 1, 8000, 8)),
        b"data" + struct.pack("<I", len(odd)) + odd,
        chunk(b"LIST", b"INFO"),
    )
    for wav in (padded, unpadded):
        audio, reader = read(wav, 3)
        assert audio == odd
        assert not reader.surplus


def test_several_files_in_a_row_are_one_stream() -> None:
    audio, reader = read(PLAIN + EXTRA + PLAIN, 9)
    assert audio == AUDIO * 3
    assert not reader.surplus


def test_a_second_file_in_another_format_is_refused() -> None:
    with pytest.raises(AudioError, match=r"8000 Hz.*first said") as caught:
        read(PLAIN + riff(chunk(b"fmt ", fmt_body(rate=8000)), chunk(b"data", AUDIO)))
    assert caught.value.problem is AudioProblem.FORMAT_MISMATCH


def test_bytes_after_the_audio_are_dropped_and_reported() -> None:
    audio, reader = read(PLAIN + b"\x01\x02\x03\x04" * 100, 7)
    assert audio == AUDIO
    assert reader.surplus


def test_zeros_after_the_audio_are_padding() -> None:
    audio, reader = read(PLAIN + bytes(512), 7)
    assert audio == AUDIO
    assert not reader.surplus


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (fmt_body(1, 2, 48_000, 16), AudioFormat(Encoding.PCM_S16LE, 48_000, 2)),
        (fmt_body(3, 1, 44_100, 32), AudioFormat(Encoding.PCM_F32LE, 44_100, 1)),
        (fmt_body(6, 1, 8000, 8), AudioFormat(Encoding.ALAW, 8000, 1)),
        (fmt_body(7, 2, 8000, 8) + b"\x00\x00", AudioFormat(Encoding.MULAW, 8000, 2)),
        (fmt_body(1, 1, 16_000, 16, extensible=True), MONO),
        (fmt_body(3, 8, 96_000, 32, extensible=True), AudioFormat(Encoding.PCM_F32LE, 96_000, 8)),
    ],
)
def test_formats(body: bytes, expected: AudioFormat) -> None:
    assert parse_fmt(body) == expected


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (fmt_body(1, 1, 16_000, 24), "24 bits"),
        (fmt_body(1, 1, 16_000, 8), "8 bits"),
        (fmt_body(0x11, 1, 16_000, 4), "codec 0x0011"),
        (fmt_body(0x55, 2, 44_100, 0), "codec 0x0055"),
        (fmt_body(1, 9, 16_000, 16), "9 channels"),
        (fmt_body(1, 0, 16_000, 16), "0 channels"),
        (fmt_body(1, 1, 4000, 16), "4000 Hz"),
        (fmt_body(1, 1, 384_000, 16), "384000 Hz"),
        (fmt_body(1, 1, 16_000, 16)[:12] + b"\x07\x00\x10\x00", "block size 7"),
        (b"\x01\x00", "2 bytes"),
    ],
)
def test_what_is_not_supported_is_said_with_the_remedy(body: bytes, says: str) -> None:
    with pytest.raises(AudioError, match=says) as caught:
        read(riff(chunk(b"fmt ", body), chunk(b"data", AUDIO)), 5)
    assert caught.value.problem is AudioProblem.UNSUPPORTED_WAV
    assert "ffmpeg" in str(caught.value)


@pytest.mark.parametrize(
    ("wav", "says"),
    [
        (riff(chunk(b"data", AUDIO)), "no 'fmt ' chunk"),
        (riff(b"LIST\xff\xff\xff\xff"), "claims 4294967295 bytes"),
        (riff(b"fmt \xff\xff\xff\xff"), "claims"),
    ],
)
def test_broken_headers_are_refused(wav: bytes, says: str) -> None:
    with pytest.raises(AudioError, match=says):
        read(wav, 1)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_after_the_magic_are_audio_an_error_or_nothing(data: bytes, size: int) -> None:
    reader = WavReader()
    stream = b"RIFF\x00\x00\x00\x00WAVE" + data
    with contextlib.suppress(AudioError):
        for at in range(0, len(stream), size):
            reader.feed(stream[at : at + size])
