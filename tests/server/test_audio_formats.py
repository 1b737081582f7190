"""Encodings, mixing and the recognition of containers."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from parakeet_live.audio.formats import AudioFormat, Content, DeclaredFormat, Encoding, sniff, to_mono

WEBM = bytes.fromhex("1a45dfa39f4286810142f7810142f2810442f381084282847765626d")
OGG = b"OggS\x00\x02" + bytes(20)
FLAC = b"fLaC\x00\x00\x00\x22" + bytes(20)
ID3 = b"ID3\x04\x00\x00\x00\x00\x00\x21TSSE"
MP4 = b"\x00\x00\x00\x20ftypM4A \x00\x00\x02\x00"
MP3_FRAME = bytes.fromhex("fffb9064") + bytes(413)
"""MPEG-1 layer III, 128 kbit/s, 44.1 kHz, no padding: 417 bytes."""


@pytest.mark.parametrize(("encoding", "subtype"), [(Encoding.MULAW, "ULAW"), (Encoding.ALAW, "ALAW")])
def test_g711_tables_equal_an_independent_decoder(encoding: Encoding, subtype: str) -> None:
    codes = bytes(range(256))
    expected, _ = soundfile.read(
        io.BytesIO(codes), format="RAW", subtype=subtype, channels=1, samplerate=8000, dtype="float32"
    )
    np.testing.assert_array_equal(to_mono(codes, AudioFormat(encoding)), expected)


def test_integer_pcm_is_scaled_exactly() -> None:
    samples = to_mono(np.array([-32768, -1, 0, 32767], "<i2").tobytes(), AudioFormat())
    np.testing.assert_array_equal(samples, np.array([-1.0, -1 / 32768, 0.0, 32767 / 32768], np.float32))


def test_float_input_is_cleaned() -> None:
    data = np.array([np.nan, np.inf, -np.inf, 2.0, -7.0, 0.25], "<f4").tobytes()
    samples = to_mono(data, AudioFormat(Encoding.PCM_F32LE))
    np.testing.assert_array_equal(samples, np.array([0, 0, 0, 1, -1, 0.25], np.float32))


@pytest.mark.parametrize("channels", range(1, 9))
def test_channels_are_mixed_by_their_mean(channels: int) -> None:
    frames = np.random.default_rng(channels).uniform(-1, 1, (50, channels)).astype("<f4")
    mono = to_mono(frames.tobytes(), AudioFormat(Encoding.PCM_F32LE, channels=channels))
    np.testing.assert_allclose(mono, frames.mean(1), atol=1e-6)


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("channels", [1, 2, 3, 8])
def test_every_frame_is_decoded_alike_alone_and_among_others(encoding: Encoding, channels: int) -> None:
    audio = AudioFormat(encoding, channels=channels)
    data = np.random.default_rng(1).bytes(audio.bytes_per_frame * 100)
    alone = [
        to_mono(data[at : at + audio.bytes_per_frame], audio)
        for at in range(0, len(data), audio.bytes_per_frame)
    ]
    np.testing.assert_array_equal(np.concatenate(alone), to_mono(data, audio))


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (WEBM, Content.WEBM),
        (OGG, Content.OGG),
        (FLAC, Content.FLAC),
        (ID3, Content.MP3),
        (MP4, Content.MP4),
        (MP3_FRAME + MP3_FRAME, Content.MP3),
        (b"FORM\x00\x00\x10\x00AIFFCOMM", Content.AIFF),
        (b"caff\x00\x01\x00\x00desc", Content.CAF),
        (b".snd\x00\x00\x00\x18", Content.AU),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", Content.WAV),
        (b"RF64\xff\xff\xff\xffWAVEds64", Content.WAV),
        (b"RIFF\x24\x00\x00\x00AVI LIST", Content.RAW),
        (bytes(64), Content.RAW),
        # The sync word of MP3 is an ordinary sample; without a second frame at the right place it is audio.
        (MP3_FRAME + bytes(417), Content.RAW),
        (b"\xff\xfb" * 600, Content.RAW),
    ],
)
def test_sniff(head: bytes, content: Content) -> None:
    assert sniff(head) is content
    # Every prefix is either undecided or already right: bytes may arrive one at a time.
    verdicts = [sniff(head[:count]) for count in range(len(head))]
    assert set(verdicts) <= {Content.UNDECIDED, content}


@given(st.binary(min_size=1500, max_size=1600))
def test_sniff_always_decides(head: bytes) -> None:
    assert sniff(head) is not Content.UNDECIDED


@pytest.mark.parametrize("level", [0, 1, -1, 100, -1025, 20000])
def test_quiet_and_constant_audio_is_no_container(level: int) -> None:
    assert sniff(np.full(1000, level, "<i2").tobytes()) is Content.RAW


def test_declared_format_fills_in_defaults() -> None:
    assert DeclaredFormat().resolve() == AudioFormat(Encoding.PCM_S16LE, 16_000, 1)
    assert DeclaredFormat(sample_rate=8000).resolve() == AudioFormat(Encoding.PCM_S16LE, 8000, 1)
    assert str(AudioFormat(Encoding.MULAW, 8000, 2)) == "mulaw 8000 Hz, 2 channels"
