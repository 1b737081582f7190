"""The benchmark of ends of utterance: its streams, its judgement, its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from parakeet_live.audio.files import RATE
from parakeet_live.engine.together import Heard
from parakeet_live.evaluation.endpointing.compose import GAP_MS, Composer, Stream, Turn
from parakeet_live.evaluation.endpointing.judge import TurnResult, judge
from parakeet_live.evaluation.endpointing.material import (
    SPEECH_DBFS,
    MaterialError,
    Recording,
    cut,
    load_material,
)
from parakeet_live.evaluation.endpointing.scenes import Background, Floor, Plan
from parakeet_live.evaluation.endpointing.sounds import Sound, make_sound
from parakeet_live.evaluation.endpointing.summary import preset_data, summarise
from parakeet_live.evaluation.endpointing.targets import targets
from parakeet_live.evaluation.endpointing.telephone import encode_mulaw, through_telephone
from parakeet_live.evaluation.manifest import read_manifest
from parakeet_live.evaluation.speech import speech_runs
from parakeet_live.session.events import Eou, Final, Reason, Resumed, Word

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


def tone(*parts: tuple[float, float]) -> np.ndarray:
    """(seconds, amplitude) one after the other, as a tone of 1 kHz."""
    time = np.concatenate([np.full(round(seconds * RATE), level) for seconds, level in parts])
    return (time * np.sin(2 * np.pi * 1000 * np.arange(len(time)) / RATE)).astype(np.float32)


# Where speech is


def test_speech_is_found_in_room_noise_and_clicks_are_not_speech() -> None:
    samples = tone((0.3, 0.001), (0.4, 0.3), (0.5, 0.001), (0.01, 0.9), (0.29, 0.001))
    assert speech_runs(samples, RATE, longest_gap_ms=100) == [(300, 700)]


def test_a_gap_shorter_than_asked_is_inside_a_run() -> None:
    samples = tone((0.2, 0.3), (0.12, 0.0), (0.2, 0.3))
    assert speech_runs(samples, RATE, longest_gap_ms=150) == [(0, 520)]
    assert speech_runs(samples, RATE, longest_gap_ms=100) == [(0, 200), (320, 520)]
    assert speech_runs(np.zeros(RATE, np.float32), RATE, longest_gap_ms=100) == []


def test_recordings_are_cut_at_silence_and_brought_to_one_level() -> None:
    recording = cut(tone((0.1, 0.0), (0.3, 0.02), (0.4, 0.0), (0.2, 0.02)))
    assert recording is not None
    assert recording.pauses_ms == (400,)
    assert recording.speech_ms == 500
    for phrase in recording.phrases:
        level = np.sqrt(np.mean(phrase.samples[phrase.begin : phrase.end] ** 2))
        assert 20 * np.log10(level) == pytest.approx(SPEECH_DBFS, abs=0.2)
    assert cut(np.zeros(RATE, np.float32)) is None


# Sounds and lines


@pytest.mark.parametrize("sound", Sound)
def test_sounds_have_unit_power_and_follow_from_the_seed(sound: Sound) -> None:
    first, again, other = (make_sound(sound, 5 * RATE, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert len(first) == 5 * RATE
    assert np.sqrt(np.mean(first.astype(np.float64) ** 2)) == pytest.approx(1, abs=1e-3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(make_sound(sound, 0, np.random.default_rng(0))) == 0


def test_mulaw_has_the_codes_of_the_standard() -> None:
    # G.711: full scale up and down, and zero in both signs, which decode to the same.
    assert encode_mulaw(np.array([1.0, -1.0], np.float32)) == bytes([0x80, 0x00])
    assert encode_mulaw(np.zeros(1, np.float32)) in (b"\xff", b"\x7f")


def test_a_telephone_keeps_the_band_and_the_place_of_sound() -> None:
    inside = through_telephone(tone((0.5, 0.0), (0.5, 0.3), (0.5, 0.0)))
    assert speech_runs(inside, RATE, longest_gap_ms=100)[0] == pytest.approx((500, 1000), abs=10)
    time = np.arange(RATE) / RATE
    for frequency in (60, 5000):
        outside = through_telephone((0.3 * np.sin(2 * np.pi * frequency * time)).astype(np.float32))
        assert np.sqrt(np.mean(outside[2000:-2000] ** 2)) < 0.01


# Streams


@pytest.fixture(scope="module")
def material() -> dict[str, list[Recording]]:
    clips = [clip for clip in read_manifest(DATA / "manifest.jsonl") if clip.kind != "read"]
    return load_material(clips)


def test_streams_follow_from_the_seed(material: dict[str, list[Recording]]) -> None:
    first, again, other = (Composer(material).streams(Plan.quick(seed)) for seed in (0, 0, 1))
    assert [stream.turns for stream in first] == [stream.turns for stream in again]
    assert all(np.array_equal(one.samples(), two.samples()) for one, two in zip(first, again, strict=True))
    assert [stream.turns for stream in first] != [stream.turns for stream in other]


def test_a_condition_more_does_not_change_the_others(material: dict[str, list[Recording]]) -> None:
    few = Composer(material).streams(Plan(turns=3, pauses_ms=(500,), floors=(), backgrounds=()))
    many = Composer(material).streams(Plan(turns=3, floors=(Floor(),), backgrounds=()))
    of_many = [stream for stream in many if any(turn.pause_ms == 500 for turn in stream.turns)]
    assert [stream.turns for stream in of_many] == [stream.turns for stream in few]


@pytest.mark.parametrize("pause_ms", [0, 300, 1500])
def test_speech_and_pause_are_where_the_turn_says(
    material: dict[str, list[Recording]], pause_ms: int
) -> None:
    plan = Plan(turns=10, pauses_ms=(pause_ms,), floors=(), backgrounds=())
    for stream in Composer(material).streams(plan):
        if stream.floor != Floor():
            continue
        samples = stream.samples()
        assert len(samples) == stream.length
        assert all(after.begin_ms - before.end_ms >= GAP_MS[0] for before, after in pairwise(stream.turns))
        for turn in stream.turns:
            assert turn.pause_ms == pause_ms
            begin, end = turn.begin_ms - 50, turn.end_ms + 100
            piece = samples[begin * RATE // 1000 : end * RATE // 1000]
            runs = speech_runs(piece, RATE, longest_gap_ms=20)
            assert runs[0][0] == pytest.approx(50, abs=40)
            assert runs[-1][1] == pytest.approx(end - begin - 100, abs=70)
            longest = max((after[0] - before[1] for before, after in pairwise(runs)), default=0)
            if pause_ms:
                assert longest == pytest.approx(pause_ms, abs=100)
            else:
                assert longest < 300


def test_floors_lie_as_far_below_the_speech_as_they_say(material: dict[str, list[Recording]]) -> None:
    floor = Floor(Sound.PINK, 20)
    plan = Plan(turns=1, pauses_ms=(), floors=(), backgrounds=(Background(floor, 5),))
    (stream,) = Composer(material).streams(plan)
    level = 20 * np.log10(np.sqrt(np.mean(stream.samples().astype(np.float64) ** 2)))
    assert level == pytest.approx(SPEECH_DBFS - 20, abs=0.1)


def test_a_pause_needs_words_on_both_sides() -> None:
    recording = cut(tone((2.0, 0.3)))
    assert recording is not None
    with pytest.raises(MaterialError, match="words on both sides"):
        Composer({"someone": [recording]})
    with pytest.raises(MaterialError, match="no recording"):
        load_material([])


# Judgement: one turn from 1000 to 2000 ms, with a pause in it, then one from 6000 to 7000 ms

STREAM = Stream(
    "pauses", Floor(), 11 * RATE, (0, 0), turns=(Turn(1_000, 2_000, 500), Turn(6_000, 7_000, 500))
)


def final(
    heard_ms: int, *starts: int, reason: Reason = Reason.EOU, live: bool = True, number: int = 0
) -> Heard:
    words = tuple(Word("five", start, start + 80, 0.9) for start in starts)
    text = " ".join(word.text for word in words)
    eou = heard_ms - 300 if reason is Reason.EOU else None
    return Heard(Final(number, text, words, heard_ms - 100, reason, eou), heard_ms, live)


def eou(heard_ms: int, number: int = 0) -> Heard:
    return Heard(Eou(number, heard_ms - 50), heard_ms, live=True)


def resumed(heard_ms: int, number: int = 0) -> Heard:
    return Heard(Resumed(number, heard_ms - 50), heard_ms, live=True)


SECOND = [eou(7_300, 1), final(7_600, 6_100, 6_700, number=1)]
"""The second turn, ended as it should be."""


def judged(*heard: Heard) -> TurnResult:
    first, second = judge(STREAM, [*heard, *SECOND]).turns
    assert not second.early
    assert not second.missed
    return first


def test_an_end_that_is_right_is_timed_twice() -> None:
    turn = judged(eou(2_300), final(2_700, 1_100, 1_800))
    assert not any((turn.early, turn.eager_early, turn.missed, turn.unheard))
    assert (turn.eager_delay_ms, turn.final_delay_ms, turn.reason) == (300, 700, Reason.EOU)


def test_a_claim_that_is_taken_back_is_early_but_cuts_nothing() -> None:
    turn = judged(eou(1_500), resumed(1_700), eou(2_250), final(2_700, 1_100, 1_800))
    assert turn.eager_early
    assert not turn.early
    assert turn.eager_delay_ms == 250


def test_a_final_in_a_pause_cuts() -> None:
    turn = judged(eou(1_400), final(1_600, 1_100), eou(2_300), final(2_700, 1_800))
    assert turn.early
    assert not turn.missed
    assert turn.final_delay_ms == 700


def test_a_final_that_leaves_a_late_word_cuts() -> None:
    assert judged(final(2_050, 1_100), final(2_900, 2_150)).early
    assert not judged(final(2_900, 1_100, 1_700), final(5_000, 4_000)).early, "nobody said the second word"


def test_an_end_before_the_speech_is_over_has_no_delay() -> None:
    turn = judged(eou(1_400), final(1_600, 1_100))
    assert turn.early
    assert turn.final_delay_ms is None


def test_an_end_without_a_claim_has_no_eager_delay() -> None:
    turn = judged(final(3_400, 1_100, 1_800, reason=Reason.SILENCE))
    assert (turn.final_delay_ms, turn.eager_delay_ms, turn.reason) == (1_400, None, Reason.SILENCE)


def test_words_that_are_open_when_the_next_turn_begins_are_a_missed_end() -> None:
    first, second = judge(STREAM, [final(7_600, 1_100, 1_800, 6_100)]).turns
    assert first.missed
    assert first.final_delay_ms is None
    assert not second.missed
    assert second.final_delay_ms == 600
    last = judge(STREAM, [final(2_700, 1_100), final(11_000, 6_100, live=False, reason=Reason.END)]).turns[1]
    assert last.missed


def test_a_turn_without_words_was_not_heard() -> None:
    turn = judged()
    assert turn.unheard
    assert not any((turn.missed, turn.early))


def test_words_that_nobody_said_are_counted() -> None:
    result = judge(STREAM, [final(2_700, 1_100, 1_800), final(5_000, 4_000, 4_300), *SECOND])
    assert result.false_words == 2
    noise = judge(Stream("backgrounds", Floor(), 60 * RATE, (0, 0)), [final(900, 100)])
    assert (noise.false_words, noise.quiet_ms) == (1, 60_000)


# Figures


def test_figures_have_counts_rates_and_targets() -> None:
    noise = Stream("backgrounds", Floor(Sound.MUSIC, 0), 30 * RATE, (0, 0))
    results = [
        judge(STREAM, [eou(2_300), final(2_700, 1_100, 1_800), *SECOND]),
        judge(STREAM, [eou(1_400), final(1_600, 1_100), final(2_900, 1_800), *SECOND]),
        judge(noise, [final(900, 100)]),
    ]
    summary = summarise("conversation", {"eou_silence_ms": 640}, results)
    (row,) = summary.pauses
    assert (row.name, row.turns, row.early, row.missed) == ("500", 4, 1, 0)
    assert row.final_delay_ms.count == 4
    data = preset_data(summary)
    assert data["pauses"][0]["early_rate"] == 0.25
    assert data["backgrounds"][0]["words_per_minute"] == 2.0
    assert data["settings"] == {"eou_silence_ms": 640}
    kept = {target.what: target.kept for target in targets(summary)}
    assert kept["early, pause 500 ms"] is False
    assert kept["missed, most (pause 500 ms)"] is True
    assert kept["final p50"] is True
    assert kept["false words, music 0 dB"] is False
    assert json.loads(json.dumps(data))["pauses"][0]["early"] == 1


def test_figures_are_plotted(tmp_path: Path) -> None:
    results = [judge(STREAM, [eou(1_400), resumed(1_700), eou(2_300), final(2_700, 1_100, 1_800), *SECOND])]
    presets = [preset_data(summarise(name, {}, results)) for name in ("conversation", "command")]
    figures, plots = tmp_path / "figures.json", tmp_path / "plots"
    figures.write_text(json.dumps({"presets": presets}))
    command = [sys.executable, "-m", "benchmarks.plot_endpointing", str(figures), "--out", str(plots)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    assert (plots / "endpointing.svg").read_text(encoding="utf-8").startswith("<?xml")
