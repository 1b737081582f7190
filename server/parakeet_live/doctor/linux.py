"""What Linux says about the machine, and what a container leaves of it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from parakeet_live.doctor.findings import Finding, Level

FAST_INSTRUCTIONS = {
    "avx512_vnni": "AVX-512 VNNI",
    "avx_vnni": "AVX VNNI",
    "amx_int8": "AMX",
    "asimddp": "dot products",
    "i8mm": "matrix products",
}
"""Flags of /proc/cpuinfo for products of eight-bit numbers, which int8 bundles live on."""
KERNELS_ON_A_MAC = ("linuxkit", "orbstack")
"""In the kernel release inside of Docker Desktop's and OrbStack's virtual machines."""


def check_linux(root: Path = Path("/"), release: str | None = None) -> list[Finding]:
    """Machine, system and container, from the files below ``root``."""
    release = release or platform.release()
    info = _colon_lines(root / "proc/cpuinfo")
    memory = _colon_lines(root / "proc/meminfo")
    flags = (info.get("flags") or info.get("Features") or "").split()
    fast = [name for flag, name in FAST_INSTRUCTIONS.items() if flag in flags]
    gigabytes = int(memory.get("MemTotal", "0").split()[0]) / 2**20
    chip = info.get("model name") or info.get("CPU part") or platform.machine()
    instructions = f"with {', '.join(fast)}" if fast else "without fast eight-bit products"
    system = _os_release(root).get("PRETTY_NAME", "Linux")
    return [
        Finding("machine", f"{chip}, {os.cpu_count()} cores {instructions}, {gigabytes:.0f} GB"),
        Finding("system", f"{system}, kernel {release}, {platform.machine()}"),
        Finding("neural engine", "none: it takes a Mac, and a program outside of any container", Level.NOTE),
        *_container(root, release),
    ]


def _container(root: Path, release: str) -> list[Finding]:
    """Whether this is one, and its limits (cgroup v2)."""
    group = root / "sys/fs/cgroup"
    limits = []
    quota = _text(group / "cpu.max").split()
    if len(quota) == 2 and quota[0] != "max":
        limits.append(f"{int(quota[0]) / int(quota[1]):g} cores")
    memory = _text(group / "memory.max")
    if memory.isdigit():
        limits.append(f"{int(memory) / 2**30:.1f} GB of memory")
    inside = any((root / name).exists() for name in (".dockerenv", "run/.containerenv"))
    if not inside and not limits:
        return []
    findings = [
        Finding("container", f"limited to {' and '.join(limits)}" if limits else "no limits", Level.NOTE)
    ]
    if any(name in release for name in KERNELS_ON_A_MAC):
        findings.append(
            Finding(
                "container",
                "it runs on a Mac, in a virtual machine that cannot reach the Neural Engine",
                Level.WARNING,
                "run parakeet-live on the Mac itself (docs/mac.md)",
            )
        )
    return findings


def _os_release(root: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in _text(root / "etc/os-release").splitlines())
    return {name: value.strip('"') for name, _, value in lines}


def _colon_lines(path: Path) -> dict[str, str]:
    """The first value of each ``name : value``."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, separator, value = line.partition(":")
        if separator:
            found.setdefault(name.strip(), value.strip())
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
