"""How many cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(cgroup_limit: Path = CGROUP_LIMIT) -> int:
    """Cores of the machine, less what the process is not allowed to run on: its affinity and a container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = cgroup_limit.read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass  # no cgroup v2 here: no quota to respect
    return max(1, cores)
