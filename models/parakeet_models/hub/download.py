"""One file over HTTP, continued where it was interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_stream_backoff

CHUNK_BYTES = 1 << 18
ATTEMPTS = 4
"""Tries in a row that bring nothing before giving up."""
PAUSE_SECONDS = 1.0

Report = Callable[[int], None]
"""Gets the number of bytes that arrived, or were there already; negative where they must come again."""


def download(url: str, path: Path, size: int, report: Report) -> None:
    """Append to ``path`` what it lacks of the ``size`` bytes at ``url``; broken connections are tried again.

    Raises:
        HfHubHTTPError: the hub refuses. httpx2.TransportError: the network does not recover. OSError: the disk.
    """
    failures = 0
    while (have := _size(path)) < size or not path.exists():
        try:
            _stream(url, path, have, report)
        except httpx2.TransportError:
            progress = _size(path) > have
            failures = 1 if progress else failures + 1
            if failures == ATTEMPTS:
                raise
            time.sleep(PAUSE_SECONDS)


def _stream(url: str, path: Path, have: int, report: Report) -> None:
    """One request for the bytes from ``have`` on. Each piece is on disk before the next is awaited."""
    # A compressed body could not be continued in the middle.
    headers = build_hf_headers(headers={"accept-encoding": "identity"})
    if have:
        headers["range"] = f"bytes={have}-"
    with (
        http_stream_backoff(
            "GET",
            url,
            headers=headers,
            timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            max_retries=ATTEMPTS - 1,
            retry_on_exceptions=(),
        ) as response,
        path.open("ab") as file,
    ):
        hf_raise_for_status(response)
        if have and response.status_code == 200:  # the server knows no ranges, and begins anew
            file.truncate(0)
            report(-have)
        for chunk in response.iter_bytes(CHUNK_BYTES):
            file.write(chunk)
            file.flush()
            report(len(chunk))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
