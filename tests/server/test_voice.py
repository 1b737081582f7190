"""The voice detector on one stream: what it hears, and from where on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

from parakeet_live.evaluation.endpointing.sounds import Sound, make_sound
from parakeet_live.evaluation.endpointing.telephone import through_telephone
from parakeet_live.session.voice import CHUNK, CONTEXT, SileroModel, VoiceMonitor
from parakeet_models.mel import Float32
from support.sounds import RATE, at_level

AUDIO = Path(__file__).parents[1] / "data" / "audio"
FRAME = 1_280
"""Samples of an encoder frame, at the end of which questions are asked."""


class Says:
    """A detector whose probability is the loudest sample of the chunk, and that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, samples: Float32, state: Float32) -> tuple[float, Float32]:
        assert len(samples) == CONTEXT + CHUNK
        self.asked += 1
        return float(np.abs(samples[CONTEXT:]).max()), state


def level(*parts: tuple[float, float]) -> Float32:
    """Samples of this level for so many seconds, part by part."""
    return np.concatenate([np.full(round(seconds * RATE), value, np.float32) for seconds, value in parts])


def test_a_faint_voice_puts_off_and_only_a_clear_one_is_reported() -> None:
    for probability, holds, reported in ((0.1, False, False), (0.3, True, False), (0.9, True, True)):
        monitor = VoiceMonitor(Says())
        monitor.push(level((1, 0), (0.5, probability)))
        end = round(1.5 * RATE)
        assert monitor.speaks(end, end - RATE) is reported
        assert (monitor.since_voice_ms(end, end - RATE) < 100) is holds


def test_everything_since_the_last_token_is_heard_at_the_first_question() -> None:
    """The word behind the last token may not have been recognised: its voice counts all the same."""
    monitor = VoiceMonitor(Says())
    monitor.push(level((2, 0), (0.1, 0.9), (0.6, 0)))
    since = monitor.since_voice_ms(round(2.7 * RATE), after=2 * RATE)
    assert abs(since - 600) <= 32


def test_asking_at_every_frame_hears_each_chunk_about_once() -> None:
    model = Says()
    monitor = VoiceMonitor(model)
    monitor.push(level((10, 0)))
    for position in range(RATE, 10 * RATE, FRAME):
        monitor.since_voice_ms(position, after=RATE)
        monitor.forget_before(position)
    assert model.asked <= 1.6 * 9 * RATE / CHUNK


def test_what_is_far_quieter_than_the_speech_before_is_not_listened_to() -> None:
    """And the loudness that counts fades, so that someone may speak from farther away."""
    model = Says()
    monitor = VoiceMonitor(model)
    monitor.push(level((1.024, 0.9), (9, 0.9 * 10 ** (-43 / 20))))
    asked = [0]
    for until in (4, 10):  # the speech is less than 35 dB louder from the fifth second on
        for position in range(round(1.4 * RATE), until * RATE, FRAME):
            monitor.since_voice_ms(position, after=round(1.3 * RATE))
            monitor.forget_before(position)
        asked.append(model.asked)
    assert asked[1] == 0
    assert asked[2] >= 4 * RATE // CHUNK


class Remembers:
    """A detector whose state is the last sample it has heard."""

    def __call__(self, samples: Float32, state: Float32) -> tuple[float, Float32]:
        before = state[0, 0, 0]
        assert before in (0, samples[CONTEXT - 1]), "the state of some other moment"
        return 0.0, np.full_like(state, samples[-1])


def test_the_state_never_stands_for_another_moment_than_the_one_before() -> None:
    """Wherever a question ends: in quiet that is not listened to, or at the place that the next one starts from."""
    noise = np.random.default_rng(3).normal(0, 0.2, 12 * RATE).astype(np.float32)
    for second in range(1, 12, 3):
        noise[second * RATE : (second + 2) * RATE] *= np.float32(10 ** (-43 / 20))
    rng = np.random.default_rng(4)
    for _ in range(20):
        monitor = VoiceMonitor(Remembers())
        monitor.push(noise)
        for position in np.sort(rng.integers(0, len(noise), 60)).tolist():
            monitor.since_voice_ms(position, after=int(rng.integers(0, position + 1)))


def test_every_voice_is_heard_on_a_telephone_line() -> None:
    """Without its state begun anew the network hears nobody on this line after the first who spoke."""
    onsets: list[int] = []
    audio = np.zeros(0, np.float32)
    for clip in ("fsddstr_jackson_10", "fsddstr_george_22", "fsdd_jackson_7_0", "fsddstr_jackson_00"):
        speech = at_level(soundfile.read(AUDIO / f"{clip}.flac", dtype="float32")[0], -26)
        audio = np.concatenate([audio, np.zeros(4 * RATE, np.float32)])
        onsets.append(len(audio) + int(np.flatnonzero(np.abs(speech) > 0.1 * np.abs(speech).max())[0]))
        audio = np.concatenate([audio, speech])
    noise = make_sound(Sound.ROOM, len(audio), np.random.default_rng(0))
    monitor = VoiceMonitor(SileroModel())
    monitor.push(through_telephone(audio + at_level(noise, -61)))
    frames = range(FRAME, len(audio), FRAME)
    heard = np.array([end for end in frames if monitor.speaks(end, after=end - FRAME)])
    for onset in onsets:
        after = heard[heard >= onset - 0.1 * RATE] - onset
        assert len(after)
        assert after[0] <= 0.3 * RATE
