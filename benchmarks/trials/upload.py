"""An hour of audio as fast as it goes: slowed by back-pressure alone, bounded in memory, and no text lost."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.trials.harness import END, Outcome, cut, speech, talk, trial_server, watching_memory


async def _upload(minutes: float, audio: bytes, size: int) -> tuple[Outcome, dict[str, Any]]:
    with trial_server(1) as probe:
        started = time.monotonic()
        async with watching_memory(probe) as memory:
            outcome = await talk(probe.url, [*cut(audio, size), END])
        seconds = time.monotonic() - started
    return outcome, {
        "bytes_in_a_message": size,
        "seconds": round(seconds, 1),
        "times_real_time": round(60 * minutes / seconds, 1),
        "memory_before_mb": round(memory.before, 1),
        "memory_largest_mb": round(memory.largest, 1),
    }


async def _run(minutes: float) -> dict[str, Any]:
    audio = speech(60 * minutes)
    large, with_large = await _upload(minutes, audio, 1_000_000)
    small, with_small = await _upload(minutes, audio, 3200)
    return {
        "minutes_of_audio": minutes,
        "megabytes": round(len(audio) / 1e6, 1),
        "runs": [with_large, with_small],
        "audio_ms_recognised": [outcome.messages[-1].get("audio_ms") for outcome in (large, small)],
        "finals": [len(outcome.transcript) for outcome in (large, small)],
        "transcripts_equal": large.transcript == small.transcript,
        "close_codes": [large.code, small.code],
    }


def run(minutes: float) -> dict[str, Any]:
    return asyncio.run(_run(minutes))
