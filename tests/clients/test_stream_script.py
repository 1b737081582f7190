"""clients/stream.py, run as a person would run it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from support.cutting_proxy import cutting_proxy
from support.random_bundle import noise
from support.sockets import END, session
from support.wav import wav_file

SCRIPT = Path(__file__).parents[2] / "clients" / "stream.py"
PCM = (noise(1.5, 3) * 32767).astype("<i2").tobytes()


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], input=stdin, capture_output=True, check=False
    )


@pytest.fixture
async def expected(babble_url: str) -> list[str]:
    """Finals of PCM."""
    return [text for text in (await session(babble_url, [PCM, END])).texts if text]


@pytest.mark.parametrize("pace", ["live", "fast"])
def test_a_wav_file(babble_url: str, tmp_path: Path, expected: list[str], pace: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav_file(PCM))
    result = run(str(path), "--url", babble_url, "--pace", pace)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines() == expected
    assert result.stderr == b""


def test_raw_audio_on_standard_input(babble_url: str, expected: list[str]) -> None:
    options = ("--encoding", "pcm_s16le", "--sample-rate", "16000", "--channels", "1")
    result = run("-", "--url", babble_url, "--pace", "fast", *options, stdin=PCM)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines() == expected


def test_an_empty_file_is_no_failure(babble_url: str) -> None:
    result = run("-", "--url", babble_url)
    assert (result.returncode, result.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (["-"], b"OggS" + bytes(5000), "raw PCM"),
        (["-", "--sample-rate", "1"], PCM, "8000 to 192000"),
        (["/does/not/exist.wav"], b"", "No such file"),
    ],
)
def test_failures_are_said_in_one_line(
    babble_url: str, arguments: list[str], stdin: bytes, says: str
) -> None:
    result = run(*arguments, "--url", babble_url, "--pace", "fast", stdin=stdin)
    assert result.returncode == 1
    assert says in result.stderr.decode()
    assert len(result.stderr.splitlines()) == 1


def test_an_unreachable_server_is_said() -> None:
    result = run("-", "--url", "ws://127.0.0.1:9/v1/stream")
    assert result.returncode == 1
    assert b"stream.py: " in result.stderr
    assert b"Traceback" not in result.stderr


async def test_a_lost_connection_is_said(babble_url: str, tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav_file(PCM * 20))
    async with cutting_proxy(babble_url) as proxy:
        command = (sys.executable, str(SCRIPT), str(path), "--url", proxy.url)
        script = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        assert script.stdout is not None
        assert await script.stdout.readline()  # a final: it is in the middle
        proxy.cut()
        _, said = await script.communicate()
    assert script.returncode == 1
    assert "connection lost, the text above is not all there is" in said.decode()
    assert len(said.splitlines()) == 1


def test_wrong_use() -> None:
    assert run().returncode == 2


def test_it_is_short_enough_to_copy() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 110
