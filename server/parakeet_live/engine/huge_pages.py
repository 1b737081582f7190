"""Huge pages for the network's weights.

A step of one stream reads every weight once, so its time is the weights' way from memory, and on 4 KiB pages a tenth
of that is address translation (docs/performance.md). Linux gives 2 MiB pages to memory that asks for them; ONNX Runtime
does not ask. So once a model is loaded its memory is asked for here, and collapsed at once (madvise(2):
MADV_HUGEPAGE, and MADV_COLLAPSE of Linux 6.1).
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

HUGE_PAGE = 2 * 1024 * 1024
"""Bytes of a huge page on x86-64 and on arm64 with 4 KiB pages; elsewhere the kernel refuses, and nothing is lost."""
MADV_HUGEPAGE = 14
MADV_COLLAPSE = 25

log = logging.getLogger(__name__)


def use_huge_pages() -> int:
    """Move this process's large private memory to huge pages where the system offers them; returns bytes moved.

    Takes about 2 ms for each MB. Does nothing on other systems than Linux, and never fails: without huge pages
    everything works as well, only slower.
    """
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    moved = 0
    for begin, end in _large_mappings(Path("/proc/self/maps").read_text().splitlines()):
        libc.madvise(begin, end - begin, MADV_HUGEPAGE)
        if libc.madvise(begin, end - begin, MADV_COLLAPSE) == 0:
            moved += end - begin
    log.debug("%.0f MB are on huge pages", moved / 1e6)
    return moved


def _large_mappings(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Whole huge pages inside writable anonymous mappings, as (begin, end), from lines of /proc/PID/maps."""
    for line in lines:
        addresses, permissions, _, _, inode, *name = line.split(maxsplit=5)
        if permissions != "rw-p" or inode != "0" or (name and name[0] != "[heap]"):
            continue
        begin, end = (int(address, 16) for address in addresses.split("-"))
        begin, end = -(-begin // HUGE_PAGE) * HUGE_PAGE, end // HUGE_PAGE * HUGE_PAGE
        if begin < end:
            yield begin, end
