"""The examples do what they say, as processes of their own, against a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

EXAMPLES = Path(__file__).parents[2] / "clients" / "examples"
AUDIO = Path(__file__).parents[1] / "data" / "audio"
AGENT, CALLER = (
    ("fsddstr_jackson_00.flac", "five zero five"),
    ("fsddstr_jackson_10.flac", "one nine eight two"),
)


def samples(name: str) -> np.ndarray:
    """Half a second of silence, speech, a second and a half of silence: int16 at 16 kHz."""
    speech, rate = soundfile.read(AUDIO / name, dtype="int16")
    return np.concatenate([np.zeros(rate // 2, np.int16), speech, np.zeros(3 * rate // 2, np.int16)])


def call() -> np.ndarray:
    """int16[n, 2]: the caller answers when the agent has spoken."""
    agent, caller = samples(AGENT[0]), samples(CALLER[0])
    both = np.zeros((len(agent) + len(caller), 2), np.int16)
    both[: len(agent), 0] = agent
    both[len(agent) :, 1] = caller
    return both


def transcribed(arguments: list[str], audio: bytes | None = None) -> list[list[str]]:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "call_audio.py"), *arguments],
        input=audio,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return [line.split("s", 1)[1].split() for line in ran.stdout.decode().splitlines()]


EXPECTED = [["agent", *AGENT[1].split()], ["caller", *CALLER[1].split()]]


def test_call_in_a_wav_file(server_url: str, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "call.wav", call(), 16_000, subtype="PCM_16")
    assert sorted(transcribed([str(tmp_path / "call.wav"), "--url", server_url])) == EXPECTED


def test_call_in_mu_law_from_a_pipe(server_url: str, tmp_path: Path) -> None:
    raw = tmp_path / "call.raw"
    soundfile.write(raw, call()[::2], 8_000, format="RAW", subtype="ULAW")
    assert sorted(transcribed(["-", "--url", server_url], raw.read_bytes())) == EXPECTED


def test_file_of_one_channel_is_refused(server_url: str, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "mono.wav", samples(AGENT[0]), 16_000)
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "call_audio.py"), str(tmp_path / "mono.wav"), "--url", server_url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "2 channels" in ran.stderr


@pytest.fixture
def relay_url(server_url: str) -> Iterator[str]:
    command = [sys.executable, "-m", "uvicorn", "relay:app", "--port", "0", "--app-dir", str(EXAMPLES)]
    environment = os.environ | {"PARAKEET_URL": server_url, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "running on" in line:
                    yield line.split("running on ")[1].split()[0].replace("http", "ws", 1) + "/audio"
                    break
        finally:
            process.kill()


def test_relay_between_browser_and_server(relay_url: str) -> None:
    with connect(f"{relay_url}?ticket=let-me-in") as browser:
        browser.send(samples(AGENT[0]).tobytes())
        browser.send(samples(CALLER[0]).tobytes())
        browser.send("end")
        assert [json.loads(text)["text"] for text in browser] == [AGENT[1], CALLER[1]]


def test_relay_refuses_strangers(relay_url: str) -> None:
    with connect(relay_url) as browser, pytest.raises(ConnectionClosedError, match="ticket"):
        browser.recv()
