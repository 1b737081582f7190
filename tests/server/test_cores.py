"""Threads follow what the process may use: affinity, a container's quota, a service manager's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from parakeet_live.engine.cores import usable_cores
from parakeet_models.bundle import Bundle
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, http, session

PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()
NOWHERE = Path("/nonexistent")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "limit"), [("150000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", None), ("?", None)]
)
def test_a_containers_quota(tmp_path: Path, text: str, limit: int | None) -> None:
    write(tmp_path / "cpu.max", text)
    without = usable_cores(tmp_path / "missing", NOWHERE)
    assert usable_cores(tmp_path, NOWHERE) == (without if limit is None else min(without, limit))


def test_a_quota_of_any_group_above_counts(tmp_path: Path) -> None:
    write(tmp_path / "membership", "0::/system.slice/parakeet-live.service\n")
    write(tmp_path / "top" / "system.slice" / "cpu.max", "100000 100000\n")
    write(tmp_path / "top" / "system.slice" / "parakeet-live.service" / "cpu.max", "max 100000\n")
    assert usable_cores(tmp_path / "top", tmp_path / "membership") == 1


def test_version_one_of_control_groups(tmp_path: Path) -> None:
    write(tmp_path / "membership", "5:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/box\n")
    group = tmp_path / "top" / "cpu,cpuacct" / "box"
    write(group / "cpu.cfs_quota_us", "100000\n")
    write(group / "cpu.cfs_period_us", "100000\n")
    assert usable_cores(tmp_path / "top", tmp_path / "membership") == 1
    write(group / "cpu.cfs_quota_us", "-1\n")
    assert usable_cores(tmp_path / "top", tmp_path / "membership") == usable_cores(NOWHERE, NOWHERE)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux does")
def test_numpy_starts_no_thread_for_each_core() -> None:
    program = "import parakeet_live.cli, numpy, os; print(len(os.listdir('/proc/self/task')))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert result.stdout == "1\n"


@contextmanager
def affinity(cores: set[int]) -> Iterator[None]:
    """Processes that are started here inherit it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux'")
async def test_a_server_on_one_core_has_one_lane_and_no_busy_threads(
    random_bundle: Bundle, tmp_path: Path
) -> None:
    before = set(psutil.Process().children())
    with affinity({min(os.sched_getaffinity(0))}):
        server = running_server(tmp_path / "log", "--model", str(random_bundle.directory))
        url = server.__enter__()
    try:
        (process,) = set(psutil.Process().children()) - before
        assert http(url, "/v1/stats").json()["lanes"] == 1
        assert (await session(url, [PCM, END])).code == 1000
        # The main thread, one lane, and the pool in which the model was loaded; none for each core of the machine.
        assert process.num_threads() <= 8
        used = process.cpu_times().user
        await asyncio.sleep(1.0)
        assert process.cpu_times().user - used < 0.5, "an idle server must not spin"
    finally:
        server.__exit__(None, None, None)
