"""What can be read of a server and its machine from outside: processor time, memory, its own statistics."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

import psutil

from parakeet_live.web.probes import STATS_PATH

HTTP_TIMEOUT = 10.0
"""Seconds for an answer; a server under load answers late, one that never answers has no statistics."""
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters at one moment. Processor times in seconds since some past moment; None where they cannot be had."""

    at: float
    """Monotonic clock, in seconds."""
    server_cpu: float | None
    generator_cpu: float
    machine_cpu: float
    """Of all processes together, and what a hypervisor took away."""
    rss_mb: float | None
    stats: dict[str, Any] | None


class Probe:
    """Reads the counters of one server; ``pid`` is None for a server that this machine may not be running."""

    def __init__(self, url: str, pid: int | None, key: str | None = None) -> None:
        """``key`` is an API key, where the server wants one."""
        self.url = url
        self.pid = pid
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._process = psutil.Process(pid) if pid is not None else None

    def snapshot(self) -> Snapshot:
        """Blocks for as long as the server takes to answer."""
        return Snapshot(
            at=time.monotonic(),
            server_cpu=self._server_cpu(),
            generator_cpu=time.process_time(),
            machine_cpu=_machine_cpu(),
            rss_mb=self.rss_mb(),
            stats=self._stats(),
        )

    def rss_mb(self) -> float | None:
        """Resident memory of the server and its children, in megabytes (10^6 bytes)."""
        if self._process is None:
            return None
        return sum(float(process.memory_info().rss) for process in self._family()) / MEGABYTE

    def _server_cpu(self) -> float | None:
        if self._process is None:
            return None
        times = [process.cpu_times() for process in self._family()]
        return sum(float(time.user + time.system) for time in times)

    def _family(self) -> Iterator[psutil.Process]:
        assert self._process is not None
        yield self._process
        yield from self._process.children(recursive=True)

    def _stats(self) -> dict[str, Any] | None:
        parts = urlsplit(self.url)
        scheme = {"ws": "http", "wss": "https"}[parts.scheme]
        try:
            url = f"{scheme}://{parts.netloc}{STATS_PATH}"
            # Of the two schemes above and no other, hence:
            request = urllib.request.Request(url, headers=self.headers)  # nosec B310
            with urllib.request.urlopen(request, timeout=HTTP_TIMEOUT) as answer:  # nosec B310
                stats: dict[str, Any] = json.load(answer)
        except (URLError, TimeoutError, ValueError):
            return None
        return stats


def _machine_cpu() -> float:
    times = psutil.cpu_times()
    # Guest time is already part of user time, where the system knows it.
    idle = ("idle", "iowait", "guest", "guest_nice")
    return sum(float(value) for name, value in times._asdict().items() if name not in idle)
