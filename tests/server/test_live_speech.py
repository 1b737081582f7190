"""Real recordings through the real server with the embedded model: what users send, what they must get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest
import soundfile
import soxr
from websockets.asyncio.client import connect

from parakeet_live.evaluation.endpointing.telephone import encode_mulaw
from parakeet_models.mel import Float32
from support.sockets import END, Outcome, cut, session
from support.speech import spoken_pcm
from support.wav import wav_file

DATA = Path(__file__).parents[1] / "data"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "manifest.jsonl").open(encoding="utf-8")]
DIGIT_STRINGS = [row for row in ROWS if row["kind"] == "digit-string"]
CLIP = DIGIT_STRINGS[1]


def recording(row: dict[str, Any]) -> Float32:
    """float32[n] at 16 kHz, with a second of silence behind it, as in a live stream."""
    samples, rate = soundfile.read(DATA / row["audio"], dtype="float32")
    assert rate == 16_000
    return np.concatenate([samples, np.zeros(16_000, np.float32)])


def pcm16(samples: Float32) -> bytes:
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()


def text_of(outcome: Outcome) -> str:
    return " ".join(text for text in outcome.texts if text)


def words_of(outcome: Outcome) -> list[dict[str, Any]]:
    return [word for final in outcome.of("final") for word in final["words"]]


async def test_spoken_digits(server_url: str) -> None:
    """The word error rate that the model card promises at least, and a natural end for every recording."""
    heard = []
    for row in DIGIT_STRINGS:
        outcome = await session(server_url, [*cut(pcm16(recording(row)), 3200), END])
        heard.append(text_of(outcome))
        assert [final["reason"] for final in outcome.of("final")] == ["eou"]
        times = [time for word in words_of(outcome) for time in (word["start_ms"], word["end_ms"])]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= row["duration"] * 1000 + 500
    assert jiwer.wer([row["text"] for row in DIGIT_STRINGS], heard) <= 0.2, heard


async def test_every_format_gives_the_same_words_at_the_same_times(server_url: str) -> None:
    samples = recording(CLIP)
    at_44, at_48, at_8 = (soxr.resample(samples, 16_000, rate) for rate in (44_100, 48_000, 8000))
    narrow = soxr.resample(at_8, 8000, 16_000)
    wide_band = {
        "sample_rate=44100": pcm16(at_44),
        "sample_rate=48000&channels=2": np.repeat(np.frombuffer(pcm16(at_48), "<i2"), 2).tobytes(),
        "encoding=pcm_f32le&sample_rate=48000": at_48.astype("<f4").tobytes(),
    }
    telephone_band = {"encoding=mulaw&sample_rate=8000": encode_mulaw(at_8), "sample_rate=8000": pcm16(at_8)}
    for original, others in ((samples, wide_band), (narrow, telephone_band)):
        expected = await session(server_url, [*cut(pcm16(original), 3200), END])
        assert text_of(expected)
        for query, data in others.items():
            outcome = await session(f"{server_url}?{query}", [*cut(data, 1600), END])
            assert text_of(outcome) == text_of(expected), query
            for word, same in zip(words_of(outcome), words_of(expected), strict=True):
                # One encoder frame is 80 ms; a word may fall on either side of its edge.
                assert abs(word["start_ms"] - same["start_ms"]) <= 80, query


@pytest.mark.parametrize("sizes", [(333, 1, 640, 7, 4001), (40, 44)])
async def test_a_wav_file_sent_as_it_is_adds_no_word(server_url: str, sizes: tuple[int, ...]) -> None:
    pcm = pcm16(recording(CLIP))
    expected = await session(server_url, [*cut(pcm, 3200), END])
    outcome = await session(server_url, [*cut(wav_file(pcm), *sizes), END])
    assert text_of(expected)
    assert outcome.results == expected.results


async def test_every_utterance_of_a_stream_gets_its_final(server_url: str) -> None:
    clips = [pcm16(recording(row)) for row in DIGIT_STRINGS] * 3
    outcome = await session(server_url, [*cut(b"".join(clips), 3200), END])
    finals = outcome.of("final")
    assert [final["reason"] for final in finals] == ["eou"] * len(clips)
    assert [final["utterance"] for final in finals] == list(range(len(clips)))
    assert outcome.messages[-1]["utterances"] == len(clips)
    # Each final belongs to its own recording.
    ends = np.cumsum([len(clip) for clip in clips]) / 32
    starts = [0.0, *ends[:-1]]
    for final, start, end in zip(finals, starts, ends, strict=True):
        assert start <= final["words"][0]["start_ms"] < final["words"][-1]["end_ms"] <= end


async def test_finalize_releases_the_whole_sentence(server_url: str) -> None:
    """The same words as with the silence that usually follows; and the session goes on."""
    samples = recording(CLIP)
    expected = await session(server_url, [pcm16(samples), END])
    finalize = '{"type":"finalize"}'
    outcome = await session(server_url, [pcm16(samples[:-16_000]), finalize, bytes(32_000), finalize, END])
    assert outcome.of("final")[-1]["reason"] == "finalize"
    assert text_of(outcome) == text_of(expected)


async def test_the_end_releases_the_last_word_in_every_phase_of_a_step(server_url: str) -> None:
    """The same words as with two seconds of silence, wherever in a recognition step the audio ends."""
    samples = recording(CLIP)[:-16_000]
    expected = await session(server_url, [pcm16(samples) + bytes(64_000), END])
    for extra in range(0, 2560, 320):
        outcome = await session(server_url, [pcm16(samples) + bytes(2 * extra), END])
        assert text_of(outcome) == text_of(expected)
        assert outcome.messages[-1]["audio_ms"] == (len(samples) + extra) * 1000 // 16_000


async def test_finals_are_readable_on_request(server_url: str) -> None:
    sent = [*cut(pcm16(recording(CLIP)), 3200), END]
    plain = await session(server_url, sent)
    outcome = await session(f"{server_url}?format=punctuation,numerals", sent)
    assert outcome.texts == plain.texts == ["one nine eight two"]
    assert [final["formatted"] for final in outcome.of("final")] == ["1982"]
    assert [final["formatted"] for final in plain.of("final")] == [None]
    assert words_of(outcome) == words_of(plain)


async def test_text_comes_while_the_stream_goes_on(server_url: str) -> None:
    """Nothing but audio is sent, and the next sentence only when there is text of the one before."""
    url = f"{server_url}?no_audio_ms=600000"
    async with connect(url, compression=None, max_queue=None) as client:
        sent_ms = 0
        for number in range(3):
            audio = spoken_pcm(1, number)
            for message in cut(audio, 3200):
                await client.send(message)
            while True:
                message = json.loads(await client.recv())
                if message["type"] == "partial" and message["words"][-1]["start_ms"] >= sent_ms:
                    break
            sent_ms += len(audio) // 32
