"""Huge pages: the right mappings are chosen, and where the kernel offers huge pages, memory is really on them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from parakeet_live.engine.huge_pages import HUGE_PAGE, _large_mappings

OFFERED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ASK = """
import re
import numpy as np
from parakeet_live.engine.huge_pages import use_huge_pages

def on_huge_pages():
    return int(re.search(r"AnonHugePages:\\s+(\\d+) kB", open("/proc/self/smaps_rollup").read())[1])

kept = [np.ones(20_000, np.float32) for _ in range(400)]  # 32 MB in pieces of a small network's weights
before = on_huge_pages()
print(use_huge_pages() // 1024, on_huge_pages() - before, sum(float(piece.sum()) for piece in kept))
"""


def test_whole_huge_pages_of_anonymous_writable_mappings() -> None:
    size = 3 * HUGE_PAGE
    base = 0x7F00_0000_0000
    lines = [
        f"{base + 4096:x}-{base + 4096 + size:x} rw-p 00000000 00:00 0 ",
        f"{base + 16 * HUGE_PAGE:x}-{base + 17 * HUGE_PAGE:x} rw-p 00000000 00:00 0 [heap]",
        f"{base + 32 * HUGE_PAGE:x}-{base + 40 * HUGE_PAGE:x} rw-p 00000000 00:00 0 [stack]",
        f"{base + 64 * HUGE_PAGE:x}-{base + 70 * HUGE_PAGE:x} r--p 00000000 00:00 0 ",
        f"{base + 96 * HUGE_PAGE:x}-{base + 99 * HUGE_PAGE:x} rw-p 00000000 fe:00 7 /a/file with spaces",
        f"{base + 4096:x}-{base + HUGE_PAGE:x} rw-p 00000000 00:00 0 ",
    ]
    assert list(_large_mappings(lines)) == [
        (base + HUGE_PAGE, base + 3 * HUGE_PAGE),
        (base + 16 * HUGE_PAGE, base + 17 * HUGE_PAGE),
    ]


@pytest.mark.skipif(
    not OFFERED.exists() or "[never]" in OFFERED.read_text(), reason="no huge pages offered here"
)
def test_memory_moves_and_keeps_its_content() -> None:
    ran = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    match = re.fullmatch(r"(\d+) (\d+) (\S+)\n", ran.stdout)
    assert match, ran.stdout
    asked, moved, total = int(match[1]), int(match[2]), float(match[3])
    assert total == 400 * 20_000
    assert asked == 0 or moved >= 16 * 1024, ran.stdout
