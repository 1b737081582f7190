"""``parakeet-live listen`` in a real pipe, against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from support.server_process import COMMAND

RECORDING = Path(__file__).parents[1] / "data" / "audio" / "fsddstr_jackson_10.flac"
SPOKEN = "one nine eight two"
SECONDS = 120


def pcm(rate: int = 16_000) -> bytes:
    samples, original = soundfile.read(RECORDING, dtype="int16")
    assert original == 16_000
    return bytes(samples[:: 16_000 // rate].tobytes())


def listen(audio: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [str(COMMAND), "listen", *options], input=audio, capture_output=True, timeout=SECONDS, check=False
    )


def test_pipe_becomes_lines_of_text(server_url: str) -> None:
    ran = listen(pcm(), "-", "--url", server_url)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, f"{SPOKEN}\n", b"")


def test_wav_header_in_the_pipe_is_read(server_url: str, tmp_path: Path) -> None:
    samples, rate = soundfile.read(RECORDING, dtype="int16")
    soundfile.write(tmp_path / "speech.wav", samples, rate)
    assert (
        listen((tmp_path / "speech.wav").read_bytes(), "-", "--url", server_url).stdout.decode()
        == f"{SPOKEN}\n"
    )


def test_events_as_json_lines(server_url: str) -> None:
    ran = listen(pcm() + bytes(64_000), "-", "--url", server_url, "--json", "--endpointing", "dictation")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert events[-1]["type"] == "done"
    finals = [event for event in events if event["type"] == "final"]
    assert [final["text"] for final in finals] == [SPOKEN]
    assert [word["text"] for word in finals[0]["words"]] == SPOKEN.split()
    assert {"partial", "final", "done"} <= {event["type"] for event in events}


def test_turns_end_as_the_flags_say(server_url: str) -> None:
    twice = pcm() + bytes(32_000) + pcm() + bytes(64_000)
    flags = ("-", "--url", server_url, "--format", "numerals")
    assert listen(twice, *flags, "--endpointing", "command").stdout == b"1982\n1982\n"
    one = ("--endpointing", "command", "--eou-silence-ms", "3000", "--silence-ms", "3000", "--no-vad")
    assert listen(twice, *flags, *one).stdout == b"19821982\n"


def test_server_of_its_own() -> None:
    ran = listen(pcm(), "-", "--model", "tiny-en")
    assert b"max_streams" not in ran.stderr  # one stream is what it is started for
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.decode() == f"{SPOKEN}\n"


def test_ctrl_c_still_brings_the_last_words(server_url: str) -> None:
    with subprocess.Popen(
        [str(COMMAND), "listen", "-", "--url", server_url, "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pcm())
        process.stdin.flush()
        while json.loads(process.stdout.readline())["type"] != "partial":
            pass
        time.sleep(1)  # the pipe stays open and silent, as a microphone does
        process.send_signal(signal.SIGINT)
        events = [json.loads(line) for line in process.stdout]
        assert process.wait(SECONDS) == 0
        assert [event["text"] for event in events if event["type"] == "final"] == [SPOKEN]
        assert events[-1]["type"] == "done"


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["talk.wav"], "parakeet-live transcribe talk.wav"),
        (["--sample-rate", "8000"], "the source is `-`"),
        (["-", "--url", "ws://127.0.0.1:9/v1/stream"], "cannot connect"),
        (["-", "--url", "ws://127.0.0.1:9/v1/stream", "--endpointing", "opera"], "conversation"),
        (["-", "--url", "ws://127.0.0.1:9/v1/stream", "--silence-ms", "long"], "integer"),
    ],
)
def test_wrong_use_names_the_remedy(options: list[str], remedy: str) -> None:
    ran = listen(b"", *options)
    assert ran.returncode in (1, 2)
    assert remedy in " ".join(ran.stderr.decode().split())
    assert b"Traceback" not in ran.stderr


def test_microphone_without_its_package_or_device_is_explained(server_url: str) -> None:
    ran = listen(b"", "--url", server_url)
    assert ran.returncode == 1
    assert b"Traceback" not in ran.stderr
    assert b"microphone" in ran.stderr


def test_a_missing_microphone_is_told_before_a_server_is_started() -> None:
    hide = "import sys; sys.modules['sounddevice'] = None; sys.argv = ['parakeet-live', 'listen']"
    run = f"{hide}; from parakeet_live.__main__ import main; main()"
    ran = subprocess.run([sys.executable, "-c", run], capture_output=True, timeout=SECONDS, check=False)
    assert ran.returncode == 1
    assert b"parakeet-live[microphone]" in ran.stderr
    assert b"starting a server" not in ran.stderr


def test_channels_apart() -> None:
    from parakeet_client.sources import split_channels

    both = np.array([[1, -1], [2, -2], [300, -300]], np.int16).tobytes()
    left, right = split_channels(both, 2, 2)
    assert np.frombuffer(left, np.int16).tolist() == [1, 2, 300]
    assert np.frombuffer(right, np.int16).tolist() == [-1, -2, -300]
    assert split_channels(b"abcdef", 3, 1) == [b"ad", b"be", b"cf"]
    with pytest.raises(ValueError, match="whole groups"):
        split_channels(b"abc", 2, 1)
