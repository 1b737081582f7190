"""Audio files: every format, rate and channel count comes out as 16 kHz mono, block by block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from parakeet_live.audio.files import RATE, AudioFileError, describe, read_blocks

SECONDS = 2.5


def read(path: Path) -> NDArray[np.float32]:
    blocks = list(read_blocks(path))
    assert all(block.dtype == np.float32 and block.ndim == 1 for block in blocks)
    return np.concatenate([np.empty(0, dtype=np.float32), *blocks])


def tone(rate: int) -> NDArray[np.float32]:
    """440 Hz at half of full scale, float32[SECONDS * rate]."""
    time = np.arange(int(SECONDS * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("name", ["tone.wav", "tone.flac"])
def test_any_rate(tmp_path: Path, name: str, rate: int) -> None:
    path = tmp_path / name
    soundfile.write(path, tone(rate), rate)
    samples = read(path)
    assert abs(len(samples) - SECONDS * RATE) <= 1
    np.testing.assert_allclose(samples[1_600:-1_600], tone(RATE)[1_600 : len(samples) - 1_600], atol=1e-3)
    assert describe(path).seconds == pytest.approx(SECONDS, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "kind", "subtype"),
    [
        ("a.wav", "WAV", "FLOAT"),
        ("a.wav", "WAV", "PCM_24"),
        ("a.wav", "WAV", "ULAW"),
        ("a.aiff", "AIFF", "PCM_16"),
        ("a.ogg", "OGG", "VORBIS"),
        ("a.opus", "OGG", "OPUS"),
        ("a.mp3", "MP3", "MPEG_LAYER_III"),
    ],
)
def test_any_format(tmp_path: Path, name: str, kind: str, subtype: str) -> None:
    path = tmp_path / name
    soundfile.write(path, tone(RATE), RATE, format=kind, subtype=subtype)
    samples = read(path)
    assert len(samples) >= SECONDS * RATE - 1
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)
    whole, _ = soundfile.read(path, dtype="float32")
    if kind != "OGG" or subtype != "OPUS":  # Opus is always at 48 kHz, so it is resampled here
        np.testing.assert_allclose(samples, whole, atol=1e-6, err_msg="reading in blocks changes nothing")


def test_channels_are_averaged(tmp_path: Path) -> None:
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([tone(RATE), np.zeros_like(tone(RATE))], axis=1), RATE, subtype="FLOAT")
    np.testing.assert_allclose(read(path), tone(RATE) / 2, atol=1e-6)


def test_blocks_are_small_and_join_to_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "tone.wav"
    soundfile.write(path, tone(RATE), RATE, subtype="FLOAT")
    assert max(len(block) for block in read_blocks(path)) <= RATE
    np.testing.assert_array_equal(read(path), tone(RATE))


def test_samples_that_are_no_numbers_become_silence(tmp_path: Path) -> None:
    path = tmp_path / "nan.wav"
    soundfile.write(path, np.array([0.5, np.nan, np.inf, -np.inf], dtype=np.float32), RATE, subtype="FLOAT")
    np.testing.assert_array_equal(read(path), [0.5, 0.0, 1.0, -1.0])


def test_a_file_without_samples_is_silence(tmp_path: Path) -> None:
    path = tmp_path / "short.wav"
    soundfile.write(path, np.empty(0, dtype=np.float32), 8_000)
    assert len(read(path)) == 0


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(AudioFileError, match="no such file"):
        read(tmp_path / "missing.wav")
    with pytest.raises(AudioFileError, match="is a directory"):
        read(tmp_path)
    (tmp_path / "empty.wav").touch()
    with pytest.raises(AudioFileError, match="is empty"):
        read(tmp_path / "empty.wav")
    (tmp_path / "text.wav").write_text("this is no audio")
    with pytest.raises(AudioFileError, match="ffmpeg"):
        read(tmp_path / "text.wav")


def test_an_interrupted_recording_is_an_error_and_not_silence(tmp_path: Path) -> None:
    path = tmp_path / "interrupted.wav"
    soundfile.write(path, tone(RATE), RATE)
    content = bytearray(path.read_bytes())
    content[40:44] = bytes(4)  # the length of the data, which a recorder fills in when it stops
    path.write_bytes(content)
    with pytest.raises(AudioFileError, match="ignore_length"):
        read(path)
    content[40:44] = b"\xff\xff\xff\xff"  # what programs write to a pipe, where they cannot go back
    path.write_bytes(content)
    assert len(read(path)) == SECONDS * RATE


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tone.flac"
    soundfile.write(path, np.random.default_rng(0).uniform(-1, 1, 80_000), RATE)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(AudioFileError, match="is damaged"):
        read(path)
