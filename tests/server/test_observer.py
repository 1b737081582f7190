"""What of a session gets into the log: no word of it, unless asked for."""

from __future__ import annotations

import logging

import pytest

from parakeet_live.engine.recognizer import Recognizer
from parakeet_live.settings import Settings
from parakeet_models.bundle import Bundle
from support.in_process import serving
from support.random_bundle import noise
from support.sockets import END, session

PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()


@pytest.mark.parametrize("wanted", [False, True])
async def test_transcripts_are_logged_only_if_asked_for(
    random_bundle: Bundle, caplog: pytest.LogCaptureFixture, wanted: bool
) -> None:
    caplog.set_level(logging.DEBUG, "parakeet_live")
    settings = Settings(warm_up=False, log_transcripts=wanted)
    async with serving(Recognizer.load(random_bundle, max_streams=1), settings) as url:
        outcome = await session(url, [PCM, END])
    texts = [text for text in outcome.texts if text]
    assert texts
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("parakeet_live")]
    assert lines
    found = [text for text in texts if any(line.endswith(f": {text}") for line in lines)]
    assert found == (texts if wanted else [])
