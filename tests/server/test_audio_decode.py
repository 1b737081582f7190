"""From bytes to samples: nothing lost, nothing invented, whatever the fragmentation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parakeet_live.audio.decode import AudioDecoder
from parakeet_live.audio.formats import (
    AudioError,
    AudioFormat,
    AudioProblem,
    DeclaredFormat,
    Encoding,
    to_mono,
)
from parakeet_models.mel import Float32
from support.wav import chunk, fmt_body, riff, wav_file

FORMATS = [
    DeclaredFormat(),
    DeclaredFormat(Encoding.PCM_S16LE, 48_000, 2),
    DeclaredFormat(Encoding.PCM_F32LE, 44_100, 3),
    DeclaredFormat(Encoding.PCM_F32LE),
    DeclaredFormat(Encoding.MULAW, 8000),
    DeclaredFormat(Encoding.ALAW, 8000, 8),
]


def decode(data: bytes, declared: DeclaredFormat, sizes: list[int]) -> Float32:
    decoder = AudioDecoder(declared)
    out, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        out.append(decoder.feed(data[at : at + size]))
        at, turn = at + size, turn + 1
    return np.concatenate([*out, decoder.end()])


def audio_bytes(count: int, declared: DeclaredFormat = FORMATS[0], seed: int = 0) -> bytes:
    """Noise in the declared format, ``count`` bytes."""
    rng = np.random.default_rng(seed)
    if declared.encoding is Encoding.PCM_F32LE:
        return rng.uniform(-1, 1, count // 4 + 1).astype("<f4").tobytes()[:count]
    return rng.bytes(count)


@settings(max_examples=60, deadline=None)
@given(
    declared=st.sampled_from(FORMATS),
    count=st.integers(0, 20_000),
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=6).filter(any),
)
def test_any_cut_gives_the_same_samples(declared: DeclaredFormat, count: int, sizes: list[int]) -> None:
    data = audio_bytes(count, declared)
    np.testing.assert_array_equal(decode(data, declared, sizes), decode(data, declared, [max(1, count)]))


@pytest.mark.parametrize("declared", FORMATS)
def test_one_byte_at_a_time(declared: DeclaredFormat) -> None:
    data = audio_bytes(2003, declared)
    np.testing.assert_array_equal(decode(data, declared, [1]), decode(data, declared, [len(data)]))


@pytest.mark.parametrize("count", range(20))
def test_the_shortest_streams_are_decoded(count: int) -> None:
    data = bytes(range(7, 7 + count))
    np.testing.assert_array_equal(
        decode(data, DeclaredFormat(), [1]), to_mono(data[: count // 2 * 2], AudioFormat())
    )


@pytest.mark.parametrize("head", [b"R", b"RIFF", b"RIFF\x01\x02\x03\x04WAV", b"Ogg", b"\xff\xfb\x90", b"fLa"])
def test_bytes_held_back_for_sniffing_are_not_lost(head: bytes) -> None:
    whole = len(head) // 2 * 2
    expected = to_mono(head[:whole], AudioFormat())
    np.testing.assert_array_equal(decode(head, DeclaredFormat(), [1]), expected)
    longer = head + b"\x01\x02" * 2000
    expected = to_mono(longer[: len(longer) // 2 * 2], AudioFormat())
    np.testing.assert_array_equal(decode(longer, DeclaredFormat(), [1]), expected)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(FORMATS), st.integers(1, 700))
def test_random_bytes_never_crash(data: bytes, declared: DeclaredFormat, size: int) -> None:
    try:
        samples = decode(data, declared, [size])
    except AudioError:
        return
    assert samples.dtype == np.float32
    assert np.isfinite(samples).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=8), st.sampled_from([1, 2]))
def test_a_wav_header_is_read_and_skipped(sizes: list[int], channels: int) -> None:
    audio = audio_bytes(1200)
    wav = riff(
        chunk(b"JUNK", bytes(33)),
        chunk(b"fmt ", fmt_body(1, channels, 8000, 16)),
        chunk(b"data", audio),
        chunk(b"LIST", b"INFO" + audio),
    )
    expected = decode(audio, DeclaredFormat(Encoding.PCM_S16LE, 8000, channels), [len(audio)])
    np.testing.assert_array_equal(decode(wav, DeclaredFormat(), sizes), expected)


def test_a_header_that_agrees_with_the_url_is_skipped() -> None:
    declared = DeclaredFormat(Encoding.MULAW, 8000, 1)
    audio = audio_bytes(800)
    np.testing.assert_array_equal(
        decode(wav_file(audio, 7, 1, 8000, 8), declared, [31]), decode(audio, declared, [800])
    )


@pytest.mark.parametrize(
    "declared",
    [DeclaredFormat(sample_rate=16_000), DeclaredFormat(channels=2), DeclaredFormat(Encoding.MULAW)],
)
def test_a_header_that_contradicts_the_url_is_refused(declared: DeclaredFormat) -> None:
    with pytest.raises(AudioError, match="opened for") as caught:
        decode(wav_file(audio_bytes(800), 1, 1, 8000, 16), declared, [5])
    assert caught.value.problem is AudioProblem.FORMAT_MISMATCH
    assert "pcm_s16le 8000 Hz, 1 channel" in str(caught.value)


@pytest.mark.parametrize("size", [1, 3, 4000])
def test_containers_are_refused_with_the_remedy(size: int) -> None:
    for head in (b"\x1aE\xdf\xa3", b"OggS", b"fLaC", b"\x00\x00\x00\x18ftypmp42", b"ID3\x03\x00\x00"):
        with pytest.raises(AudioError, match=r"raw PCM.*ffmpeg") as caught:
            decode(head + bytes(4000), DeclaredFormat(), [size])
        assert caught.value.problem is AudioProblem.UNSUPPORTED_CONTAINER


def test_a_flush_keeps_half_a_sample_and_loses_nothing() -> None:
    data = audio_bytes(4801)
    decoder = AudioDecoder()
    pieces = []
    for at in range(0, len(data), 333):
        pieces += [decoder.feed(data[at : at + 333]), decoder.flush()]
    pieces.append(decoder.end())
    np.testing.assert_array_equal(np.concatenate(pieces), to_mono(data[:4800], AudioFormat()))
