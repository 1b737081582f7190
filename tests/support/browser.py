"""A real browser whose microphone is a recording."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, Page, Playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REQUIRED_VARIABLE = "PARAKEET_REQUIRE_BROWSER"
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
)


def require_chromium() -> str:
    """Path of the browser; skips the test where there is none, fails it where there must be one."""
    if CHROMIUM is None:
        message = "no Chromium here: install it (Debian and Ubuntu: apt install chromium) to run the tests of the page"
        if os.environ.get(REQUIRED_VARIABLE):
            pytest.fail(message)
        pytest.skip(message)
    return CHROMIUM


@contextmanager
def browser(playwright: Playwright, microphone: Path | None, *, permitted: bool = True) -> Iterator[Browser]:
    """Headless Chromium; ``microphone`` is a WAV file that plays once when capture begins."""
    options = [*QUIET, "--use-fake-device-for-media-stream", "--autoplay-policy=user-gesture-required"]
    if permitted:
        options.append("--use-fake-ui-for-media-stream")
    if microphone is not None:
        options.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    # As root Chromium starts without its sandbox only; it shows nothing but our own page.
    running = playwright.chromium.launch(
        executable_path=require_chromium(), args=options, chromium_sandbox=os.geteuid() != 0
    )
    try:
        yield running
    finally:
        running.close()


@contextmanager
def opened(running: Browser, url: str, **context_options: object) -> Iterator[Page]:
    """The page at ``url``; every error in its console fails the test."""
    context = running.new_context(**context_options)  # type: ignore[arg-type]
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    try:
        yield page
    except AssertionError as error:
        error.add_note(f"errors in the page: {problems}")
        raise
    finally:
        context.close()
    assert problems == []


def page_url(stream_url: str) -> str:
    """The page of the server whose stream is at ``stream_url``."""
    return stream_url.replace("ws://", "http://", 1).removesuffix("v1/stream")


def microphone_wav(
    path: Path, *recordings: Path, rate: int = 48_000, lead: float = 1.0, tail: float = 2.0
) -> Path:
    """Recordings one after the other as a WAV file, with silence before, between and after, in seconds."""
    import soxr

    pieces = [np.zeros(int(lead * rate), np.float32)]
    for recording in recordings:
        samples, original = soundfile.read(recording, dtype="float32")
        pieces += [soxr.resample(samples, original, rate), np.zeros(int(tail * rate), np.float32)]
    soundfile.write(path, np.concatenate(pieces), rate, subtype="PCM_16")
    return path
