"""Memory that stays with the process."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
"""Of glibc's `mallopt`."""


def keep_memory() -> None:
    """Let freed memory stay with the process, where the C library can be told so (glibc).

    Otherwise each of the large tensors of a training step comes fresh from the system, page fault by page fault:
    a tenth of a step.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_M_TOP_PAD, 2**28)
