"""The real command in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile

from parakeet_live.demo import SPOKEN
from parakeet_models.bundle import Bundle

DATA = Path(__file__).parents[1] / "data"
STRING = DATA / "audio" / "fsddstr_jackson_10.flac"
DIGIT = DATA / "audio" / "fsdd_jackson_7_0.flac"
COMMAND = [sys.executable, "-m", "parakeet_live"]
TIMEOUT = 120
"""Seconds after which a command that hangs is a failure."""


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, timeout=TIMEOUT, check=False
    )


def succeed(*arguments: str | Path, stdin: bytes = b"") -> str:
    result = run(*arguments, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def refuse(*arguments: str | Path, stdin: bytes = b"") -> str:
    """Standard error of a command that must fail politely."""
    result = run(*arguments, stdin=stdin)
    message = result.stderr.decode()
    assert result.returncode == 1, message
    assert "Traceback" not in message
    return message


def test_help_names_every_command() -> None:
    text = succeed("--help")
    for command in ("serve", "transcribe", "eval", "demo"):
        assert command in text
    assert "--srt" in succeed("transcribe", "--help")


def test_model_info_has_sizes_and_numbers_that_can_be_read() -> None:
    text = succeed("models", "info", "tiny-en")
    assert re.search(r"joint\.onnx  \d+\.\d MB", text)
    assert re.search(r"tokenizer\.model  \d+\.\d kB", text)
    assert "0.0 MB" not in text
    assert not re.search(r"\d\.\d{6}", text)


def test_version() -> None:
    assert re.fullmatch(r"parakeet-live \d+\.\d+\.\d+\n", succeed("--version"))


# transcribe: what is said


def test_transcribe_prints_what_is_said(embedded_options: tuple[str, ...]) -> None:
    assert " ".join(succeed("transcribe", STRING, *embedded_options).split()) == "one nine eight two"


def test_eval_reports_the_recordings_of_a_kind(tmp_path: Path, embedded_options: tuple[str, ...]) -> None:
    details = tmp_path / "details.jsonl"
    what = ("--kind", "digit-string", "--json", "-", "--details", details)
    text = succeed("eval", DATA / "manifest.jsonl", *what, *embedded_options)
    report = json.loads(text)
    assert report["model"]["name"] == "tiny-en"
    assert [group["name"] for group in report["kinds"]] == ["digit-string"]
    assert report["overall"]["clips"] == 4
    assert report["overall"]["reference_words"] == 14
    assert report["overall"]["errors"] <= 2
    assert report["overall"]["final"]["missed"] == 0
    assert report["overall"]["final"]["early"] == 0
    assert report["overall"]["eager"]["missed"] == 0
    rows = [json.loads(line) for line in details.read_text().splitlines()]
    assert [row["id"] for row in rows] == [
        "fsddstr_jackson_00",
        "fsddstr_jackson_10",
        "fsddstr_george_22",
        "fsddstr_george_15",
    ]
    assert rows[0]["reference"] == "five zero five"


def test_transcribe_makes_text_readable_on_request() -> None:
    assert succeed("transcribe", STRING, "--format", "numerals") == "1982\n"
    document = json.loads(succeed("transcribe", STRING, "--json", "--format", "numerals,punctuation"))
    assert (document["text"], document["formatted"]) == ("one nine eight two", "1982")
    (utterance,) = document["utterances"]
    assert (utterance["text"], utterance["formatted"]) == ("one nine eight two", "1982")
    srt = succeed("transcribe", STRING, "--srt", "--format", "numerals").splitlines()
    assert srt[2] == "1982"
    assert "there are: numerals, punctuation" in refuse("transcribe", STRING, "--format", "roman")


def test_the_benchmark_of_ends_of_utterance(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = (
        "eval",
        DATA / "manifest.jsonl",
        "--kind",
        "digit",
        "--kind",
        "digit-string",
        "--endpointing",
    )
    text = succeed(*arguments, "--quick", "--preset", "conversation", "--json", figures)
    assert "tiny-en, conversation" in text
    document = json.loads(figures.read_text())
    (preset,) = document["presets"]
    assert preset["preset"] == preset["settings"]["preset"] == "conversation"
    assert [(row["name"], row["turns"]) for row in preset["pauses"]] == [("0", 6), ("500", 6)]
    assert preset["overall"]["turns"] == 18
    assert preset["overall"]["unheard"] == 0
    assert preset["overall"]["missed"] <= 1
    assert preset["overall"]["final_delay_ms"]["p50"] < 3_000
    assert preset["backgrounds"][0] == {
        "name": "digital silence",
        "minutes": pytest.approx(10 / 60),
        "words": 0,
        "words_per_minute": 0.0,
    }
    assert "words on both sides" in refuse(*arguments[:2], "--kind", "digit", "--endpointing", "--quick")


def test_transcribe_ends_turns_as_the_flags_say(tmp_path: Path) -> None:
    samples, rate = soundfile.read(STRING, dtype="float32")
    pause = np.zeros(rate, np.float32)
    twice = tmp_path / "twice.wav"
    soundfile.write(twice, np.concatenate([samples, pause, samples, pause]), rate)
    assert succeed("transcribe", twice, "--endpointing", "command").splitlines() == ["one nine eight two"] * 2
    flags = ("--endpointing", "command", "--eou-silence-ms", "3000", "--silence-ms", "3000")
    assert succeed("transcribe", twice, *flags).splitlines() == ["one nine eight two one nine eight two"]
    assert "conversation" in succeed("transcribe", "--help")
    assert "less than or equal to 60000" in refuse("transcribe", twice, "--silence-ms", "70000")


# transcribe: formats, files and errors, with a small random network


def test_formats_agree(random_bundle: Bundle) -> None:
    model = ("--model", random_bundle.directory)
    text = succeed("transcribe", STRING, *model)
    assert text == succeed("transcribe", STRING, "--text", *model)
    document = json.loads(succeed("transcribe", STRING, "--json", *model))
    assert document["source"] == str(STRING)
    assert document["audio_ms"] == 3333
    assert document["text"].split() == text.split()
    words = [word for utterance in document["utterances"] for word in utterance["words"]]
    assert " ".join(word["text"] for word in words) == document["text"]
    assert all(0 <= word["start_ms"] <= word["end_ms"] <= 3333 for word in words)
    srt = succeed("transcribe", STRING, "--srt", *model)
    assert srt.startswith("1\n00:00:0")
    assert succeed("transcribe", STRING, "--vtt", *model).startswith("WEBVTT\n\n00:00:0")


def test_standard_input_and_other_formats_give_the_same_text(random_bundle: Bundle, tmp_path: Path) -> None:
    samples, rate = soundfile.read(STRING, dtype="int16")
    stereo = tmp_path / "stereo.wav"
    soundfile.write(stereo, np.stack([samples, samples], axis=1), rate)
    model = ("--model", random_bundle.directory)
    text = succeed("transcribe", STRING, *model)
    assert succeed("transcribe", stereo, *model) == text
    assert succeed("transcribe", "-", *model, stdin=stereo.read_bytes()) == text


def test_one_bad_file_does_not_stop_the_others(random_bundle: Bundle, tmp_path: Path) -> None:
    missing = tmp_path / "missing [1].wav"
    result = run("transcribe", missing, DIGIT, "--json", "--model", random_bundle.directory)
    assert result.returncode == 1
    assert json.loads(result.stdout)["source"] == str(DIGIT)
    assert f"no such file: {missing}" in result.stderr.decode()
    assert b"Traceback" not in result.stderr


def test_output_directory(random_bundle: Bundle, tmp_path: Path) -> None:
    output = tmp_path / "new" / "subtitles"
    text = succeed(
        "transcribe", STRING, DIGIT, "--vtt", "--output", output, "--model", random_bundle.directory
    )
    assert text == ""
    assert sorted(path.name for path in output.iterdir()) == [f"{DIGIT.stem}.vtt", f"{STRING.stem}.vtt"]
    assert all(path.read_text().startswith("WEBVTT\n") for path in output.iterdir())


def test_transcribe_explains_what_cannot_be_done(random_bundle: Bundle, tmp_path: Path) -> None:
    model = ("--model", random_bundle.directory)
    assert "choose one of" in refuse("transcribe", DIGIT, "--json", "--srt", *model)
    assert "--output" in refuse("transcribe", DIGIT, STRING, "--srt", *model)
    assert "cannot read standard input" in refuse("transcribe", "-", *model, stdin=b"no audio")
    assert "standard input is empty" in refuse("transcribe", "-", *model)
    copy = tmp_path / DIGIT.name
    copy.write_bytes(DIGIT.read_bytes())
    assert "would be written to" in refuse("transcribe", DIGIT, copy, "--output", tmp_path, *model)
    assert "manifest.json" in refuse("transcribe", DIGIT, "--model", tmp_path)
    (tmp_path / "file").touch()
    assert "cannot make the directory" in refuse("transcribe", DIGIT, "--output", tmp_path / "file", *model)


def test_eval_explains_what_cannot_be_done(tmp_path: Path) -> None:
    assert "no such manifest" in refuse("eval", tmp_path / "manifest.jsonl")
    assert "there are: digit" in refuse("eval", DATA / "manifest.jsonl", "--kind", "song")
    (tmp_path / "manifest.jsonl").write_text("{}\n")
    assert "line 1" in refuse("eval", tmp_path / "manifest.jsonl")


def test_eval_prints_tables(random_bundle: Bundle) -> None:
    text = succeed("eval", DATA / "manifest.jsonl", "--model", random_bundle.directory, "--padding-ms", "500")
    for words in (
        "random, by kind",
        "digit-string",
        "fsdd-george",
        "500 ms of digital silence",
        "x real time",
    ):
        assert words in text


# serve and demo


@contextmanager
def served(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and the URL from its first line."""
    command = [*COMMAND, "serve", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.fullmatch(r"listening on (ws://127\.0\.0\.1:\d+/v1/stream)\n", line)
            assert match, line
            yield process, match[1]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_it_listens_and_stops_when_asked(
    random_bundle: Bundle, number: signal.Signals
) -> None:
    with served("--port", "0", "--model", random_bundle.directory) as (process, url):
        port = re.findall(r":(\d+)/", url)[0]
        health = httpx.get(f"http://127.0.0.1:{port}/healthz").json()
        assert health["model"] == "random"
        assert str(random_bundle.directory) not in url
        process.send_signal(number)
        output, notes = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, notes
        assert output == ""
        assert "model random" in notes
        assert "Traceback" not in notes


def test_a_taken_port_is_explained(random_bundle: Bundle) -> None:
    model = ("--model", random_bundle.directory)
    with served("--port", "0", *model) as (_, url):
        port = re.findall(r":(\d+)/", url)[0]
        assert "is in use" in refuse("serve", "--port", port, *model)


@pytest.mark.parametrize("missing", ["websockets", "uvicorn"])
def test_serve_without_its_libraries_says_so(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from parakeet_live.__main__ import main; main()"
    command = [sys.executable, "-c", program, "serve"]
    result = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    message = result.stderr.decode()
    assert result.returncode == 1
    assert missing in message
    assert "pip install" in message
    assert "Traceback" not in message


def test_demo_prints_the_finals_of_the_shipped_recording() -> None:
    text = succeed("demo")
    assert "partial  five" in text
    assert re.findall(r"^final +(.*?)   \(", text, re.MULTILINE) == [*SPOKEN]
