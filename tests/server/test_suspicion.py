"""Audio that is not what was declared is noticed within two seconds of speech; what is right, never."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect

from parakeet_live.audio.formats import AudioFormat, Encoding
from parakeet_live.audio.pace import PaceWatch
from parakeet_live.audio.suspicion import FormatWatch, Suspicion

AUDIO = sorted((Path(__file__).parents[1] / "data" / "audio").glob("*.flac"))
RATE = 16_000


def speech(rate: int = RATE) -> np.ndarray:
    """All recordings one after the other, float32."""
    pieces = [soxr.resample(*soundfile.read(path, dtype="float32"), rate) for path in AUDIO]
    return np.concatenate(pieces).astype(np.float32)


def pcm(samples: np.ndarray) -> np.ndarray:
    return np.clip(samples * 32767, -32768, 32767).astype("<i2")


def judged(data: bytes, audio: AudioFormat, piece: int = 3200) -> list[Suspicion]:
    watch = FormatWatch(audio)
    step = piece // audio.bytes_per_frame * audio.bytes_per_frame
    return [found for at in range(0, len(data), step) for found in watch.look(data[at : at + step])]


def noise(seconds: float) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, int(seconds * RATE)).astype(np.float32)


S16 = AudioFormat()
MISTAKES = {
    "float as 16 bit": (speech().astype("<f4").tobytes(), S16, Suspicion.FLOAT),
    "16 bit as float": (pcm(speech()).tobytes(), AudioFormat(Encoding.PCM_F32LE), Suspicion.INT16),
    "big-endian": (pcm(speech()).astype(">i2").tobytes(), S16, Suspicion.BIG_ENDIAN),
    "one microphone on two channels": (np.repeat(pcm(speech()), 2).tobytes(), S16, Suspicion.STEREO),
    "two speakers on two channels": (
        np.stack([pcm(speech()), np.roll(pcm(speech()), 3 * RATE)], 1).tobytes(),
        S16,
        Suspicion.STEREO,
    ),
    "white noise": (pcm(noise(5)).tobytes(), S16, Suspicion.NOISE),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_noticed(mistake: str) -> None:
    data, audio, expected = MISTAKES[mistake]
    assert judged(data, audio)[:1] == [expected]


@pytest.mark.parametrize("level", [1.0, 0.1, 0.01, 10.0])
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
def test_right_audio_is_left_alone(rate: int, level: float) -> None:
    loud = np.clip(speech(rate) * level, -1, 1)
    assert judged(pcm(loud).tobytes(), AudioFormat(sample_rate=rate)) == []
    assert judged(loud.astype("<f4").tobytes(), AudioFormat(Encoding.PCM_F32LE, rate)) == []
    two = np.stack([pcm(loud), np.roll(pcm(loud), 3 * rate)], 1)
    assert judged(two.tobytes(), AudioFormat(sample_rate=rate, channels=2)) == []


def test_silence_hum_and_offset_are_left_alone() -> None:
    time_axis = np.arange(5 * RATE) / RATE
    for samples in (np.zeros(5 * RATE), np.full(5 * RATE, 0.4), 0.3 * np.sin(2 * np.pi * 50 * time_axis)):
        assert judged(pcm(samples.astype(np.float32)).tobytes(), S16) == []


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 100_000))
def test_cutting_changes_nothing(piece: int) -> None:
    data, audio, expected = MISTAKES["big-endian"]
    assert judged(data, audio, piece) == [expected]


def paced(ratio: float, frame: float = 0.1, seconds: float = 10.0, declared: int = RATE) -> list[int]:
    watch = PaceWatch(declared)
    found = (watch.received(frame * ratio, step * frame) for step in range(int(seconds / frame)))
    return [rate for rate in found if rate is not None]


@pytest.mark.parametrize("rate", [8_000, 24_000, 44_100, 48_000])
def test_pace_of_another_rate_is_told_once(rate: int) -> None:
    assert paced(rate / RATE) == [rate]
    assert paced(rate / RATE, seconds=6) == [rate]


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.1, 1.75, 7.3, 30.0])
def test_other_paces_are_nobodys_business(ratio: float) -> None:
    assert paced(ratio) == []


def test_rate_is_judged_against_the_declared_one() -> None:
    assert paced(2.0, declared=8_000) == [16_000]
    assert paced(1.0, declared=48_000) == []


def warnings_for(url: str, query: str, data: bytes, bytes_per_second: int) -> list[dict[str, object]]:
    """Warnings of a session that sends ``data`` live."""
    with connect(f"{url}?{query}") as socket:

        def send() -> None:
            step = bytes_per_second // 10
            for at in range(0, len(data), step):
                socket.send(data[at : at + step])
                time.sleep(0.1)
            socket.send('{"type":"end"}')

        sender = threading.Thread(target=send)
        sender.start()
        messages = [json.loads(text) for text in socket]
        sender.join()
    assert messages[-1]["type"] == "done"
    return [message for message in messages if message["type"] == "warning" and message["code"] != "lagging"]


def test_client_is_told_and_the_session_goes_on(server_url: str) -> None:
    data = speech().astype("<f4").tobytes()[: 4 * RATE * 3]
    (told,) = warnings_for(server_url, "", data, 20 * RATE)
    assert told["code"] == "looks_like_float"
    assert "encoding=pcm_f32le" in str(told["message"])


def test_48_khz_audio_called_16_khz_is_told(server_url: str) -> None:
    data = pcm(speech(48_000)).tobytes()[: 96_000 * 6]
    codes = {told["code"]: told for told in warnings_for(server_url, "", data, 96_000)}
    assert codes["audio_outruns_clock"]["details"] == {"declared_hz": 16_000, "probable_hz": 48_000}
    assert warnings_for(server_url, "sample_rate=48000", data[: 96_000 * 3], 96_000) == []
