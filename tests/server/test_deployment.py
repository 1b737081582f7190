"""What is shipped to run the server: a launchd daemon and log rotation for Macs, a Dockerfile for Linux.

No Docker and no Mac are needed. The steps of the Dockerfile are done without its base image: what it copies is built
and installed, its command is started and its health check run.
"""

from __future__ import annotations

import json
import os
import plistlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser

from parakeet_live.access.keys import new_key
from parakeet_models.hub import DIRECTORY_VARIABLE

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile.macos-notes"
LAUNCHD = ROOT / "docs" / "launchd"
PLIST = LAUNCHD / "local.parakeet-live.plist"
HOME = "/opt/parakeet-live/"
INSTRUCTIONS = {
    "FROM", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
    "ENTRYPOINT", "CMD",
}  # fmt: skip
"""What ours may consist of."""
TIMEOUT = 120


@contextmanager
def started(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A server; it is killed if it still runs afterwards."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
        return number


# launchd


@pytest.fixture
def daemon() -> dict[str, Any]:
    loaded: dict[str, Any] = plistlib.loads(PLIST.read_bytes())
    return loaded


def test_the_daemon_is_started_and_started_again(daemon: dict[str, Any]) -> None:
    assert daemon["Label"] == PLIST.stem
    assert daemon["RunAtLoad"] is True
    assert daemon["KeepAlive"] == {"SuccessfulExit": False}
    assert daemon["ThrottleInterval"] >= 10
    assert daemon["ExitTimeOut"] >= 30
    assert daemon["ProcessType"] == "Interactive"
    assert daemon["SoftResourceLimits"]["NumberOfFiles"] >= 4096
    assert daemon["UserName"] == "USER"


def test_the_keys_are_those_of_launchd(daemon: dict[str, Any]) -> None:
    # launchd ignores a key that it does not know, and so a misspelt one.
    known = {
        "Label", "UserName", "ProgramArguments", "WorkingDirectory", "EnvironmentVariables", "RunAtLoad", "KeepAlive",
        "ThrottleInterval", "ExitTimeOut", "ProcessType", "SoftResourceLimits", "HardResourceLimits", "Umask",
        "StandardOutPath", "StandardErrorPath",
    }  # fmt: skip
    assert set(daemon) <= known


def test_all_paths_are_in_one_place(daemon: dict[str, Any]) -> None:
    program, *options = daemon["ProgramArguments"]
    paths = [
        program,
        daemon["StandardOutPath"],
        daemon["StandardErrorPath"],
        *daemon["EnvironmentVariables"].values(),
    ]
    paths += [option for option in options if option.startswith("/")]
    assert all(path.startswith(HOME) for path in paths)
    assert daemon["WorkingDirectory"] + "/" == HOME
    assert set(daemon["EnvironmentVariables"]) == {DIRECTORY_VARIABLE}


def test_every_log_is_rotated(daemon: dict[str, Any]) -> None:
    lines = [
        line.split() for line in (LAUNCHD / "newsyslog.conf").read_text().splitlines() if line[:1] == "/"
    ]
    arguments = daemon["ProgramArguments"]
    written = {
        daemon["StandardOutPath"],
        daemon["StandardErrorPath"],
        arguments[arguments.index("--log-file") + 1],
    }
    assert {line[0] for line in lines} == written
    for _, owner, mode, count, size, when, flags in lines:
        assert owner == "USER:staff"
        assert (mode, when) == ("640", "*")
        assert int(count) >= 1
        assert int(size) >= 1024
        assert "N" in flags


def test_the_daemon_serves(daemon: dict[str, Any], tmp_path: Path) -> None:
    """Its very arguments, with paths of this machine and a free port."""
    text = json.dumps(daemon["ProgramArguments"][1:]).replace(HOME, f"{tmp_path}/").replace('"8765"', '"0"')
    (tmp_path / "log").mkdir()
    with started([sys.executable, "-m", "parakeet_live", *json.loads(text)], dict(os.environ)) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ws://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0, "launchd would start it again"
    assert (tmp_path / "log" / "server.log").exists()


# Docker


@dataclass(frozen=True)
class Step:
    """One instruction; ``words`` of those in exec form."""

    name: str
    value: str

    @property
    def words(self) -> list[str]:
        found = json.loads(self.value[self.value.index("[") :])
        assert all(isinstance(word, str) for word in found)
        return list(found)


@pytest.fixture(scope="module")
def stages() -> list[list[Step]]:
    """Instructions by build stage."""
    with DOCKERFILE.open("rb") as file:
        structure = DockerfileParser(fileobj=file).structure
    found: list[list[Step]] = []
    for item in structure:
        if item["instruction"] == "COMMENT":
            continue
        if item["instruction"] == "FROM":
            found.append([])
        found[-1].append(Step(item["instruction"], item["value"]))
    return found


def only(stage: list[Step], name: str) -> Step:
    (step,) = (step for step in stage if step.name == name)
    return step


def test_instructions(stages: list[list[Step]]) -> None:
    assert {step.name for stage in stages for step in stage} <= INSTRUCTIONS
    build, final = stages
    assert only(build, "FROM").value.endswith(" AS build")
    for stage in stages:
        image = only(stage, "FROM").value.split()[0]
        name, tag = image.split(":")
        assert name == "python"
        assert re.fullmatch(r"3\.1[1-9]-slim-\w+", tag), "a version is pinned"
    assert final[-1].name == "CMD"


def test_it_does_not_run_as_root(stages: list[list[Step]]) -> None:
    final = stages[-1]
    names = [step.name for step in final]
    user = only(final, "USER").value
    assert user.isdigit(), "Kubernetes can tell only of a number that it is not root"
    assert int(user) > 0
    assert f"--uid {user}" in only(final, "RUN").value
    assert "RUN" not in names[names.index("USER") :]


def test_what_it_tells_the_outside(stages: list[list[Step]]) -> None:
    final = stages[-1]
    assert only(final, "EXPOSE").value == "8765"
    assert only(final, "VOLUME").words == ["/models"]
    assert f"{DIRECTORY_VARIABLE}=/models" in only(final, "ENV").value.split()
    assert only(final, "STOPSIGNAL").value == "SIGTERM"
    assert only(final, "ENTRYPOINT").words == ["parakeet-live"]
    assert only(final, "CMD").words[0] == "serve"
    options = only(final, "HEALTHCHECK").value.partition(" CMD ")[0].split()
    assert {option.partition("=")[0] for option in options} == {
        "--interval",
        "--timeout",
        "--start-period",
        "--retries",
    }


def test_the_notes_name_what_exists() -> None:
    text = DOCKERFILE.read_text()
    for path in re.findall(r"\bdocs/[\w./-]+\w", text):
        assert (ROOT / path).exists(), path
    for topic in (
        "Neural Engine",
        "launchd",
        "newsyslog",
        "pmset",
        "caffeinate",
        "replicas",
        "Upgrade",
        "8765",
    ):
        assert topic in text


@dataclass(frozen=True)
class Image:
    """What the build leaves: a directory with the installed package."""

    site: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def image(stages: list[list[Step]], tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Copy what the first stage copies, build and install it as `pip install .` does.

    Without an index: build tools and dependencies are those of this environment.
    """
    context, site = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("site")
    for step in stages[0]:
        if step.name == "COPY":
            *sources, target = step.value.split()
            for source in sources:
                copy_into(ROOT / source, context / target / (source if target == "./" else ""))
    assert "pip install --no-cache-dir ." in only(stages[0], "RUN").value
    wheels = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, context],
        check=True,
    )
    (wheel,) = wheels.glob("parakeet_live-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONUNBUFFERED": "1"}
    return Image(site, environment)


def copy_into(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"), dirs_exist_ok=True
        )
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def test_the_image_holds_everything(image: Image) -> None:
    assert (image.site / "parakeet_models" / "embedded" / "tiny-en" / "encoder.onnx").is_file()
    assert (image.site / "parakeet_live" / "demo" / "recording.wav").is_file()
    (points,) = image.site.glob("*.dist-info/entry_points.txt")
    assert "\nparakeet-live = parakeet_live." in points.read_text()


def test_its_command_serves_and_its_health_check_passes(
    stages: list[list[Step]], image: Image, tmp_path: Path
) -> None:
    final, port = stages[-1], free_port()
    _, key = new_key("tests")
    environment = image.environment | {
        "PARAKEET_LIVE_PORT": str(port),
        "PARAKEET_LIVE_KEYS": f"{key.name}:{key.id}:{key.sha256}",
        DIRECTORY_VARIABLE: str(tmp_path),
    }
    command = [sys.executable, "-m", "parakeet_live", *only(final, "CMD").words]
    check = only(final, "HEALTHCHECK").words
    assert check[0] == "python"
    with started(command, environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ws://0.0.0.0:")
        subprocess.run([sys.executable, *check[1:]], env=environment, check=True, timeout=TIMEOUT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    dead = subprocess.run([sys.executable, *check[1:]], env=environment, check=False, capture_output=True)
    assert dead.returncode == 1
