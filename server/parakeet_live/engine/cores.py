"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores of the machine, less what the process is not allowed to run on: its affinity and its processor quota.

    Containers and service managers limit a process by a quota of its control group, which most programs overlook.
    ``cgroups`` is where control groups are mounted, ``membership`` names those of this process (cgroups(7)).
    """
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quotas = (math.ceil(quota) for group in _groups(cgroups, membership) if (quota := _quota(group)))
    return max(1, min([cores, *quotas]))


def _groups(cgroups: Path, membership: Path) -> Iterator[Path]:
    """Directories of the control groups that this process is in, with all above them, which bind it too."""
    # Inside a container the mount shows the container's own group as the top, whatever the membership says.
    paths = [cgroups, cgroups / "cpu", cgroups / "cpu,cpuacct"]
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = cgroups / controllers
        inner = top / path.lstrip("/")
        paths += [inner, *(parent for parent in inner.parents if parent.is_relative_to(top))]
    yield from dict.fromkeys(paths)


def _quota(group: Path) -> float | None:
    """Cores' worth of processor time that a control group has; None without a limit."""
    try:
        if (limit := group / "cpu.max").exists():  # version 2
            quota, period = limit.read_text(encoding="ascii").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        return int(quota) / int(period) if quota not in ("max", "-1") else None
    except (OSError, ValueError):
        return None
