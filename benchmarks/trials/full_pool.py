"""Three times as many clients as streams: who is in gets the text it would get alone, who is not is told at once."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.trials.harness import END, cut, speech, spread, talk, trial_server, until_idle


async def _run(streams: int, seconds: float) -> dict[str, Any]:
    # Half of those who do not get in wait, for longer than the others talk; the other half is refused.
    with trial_server(streams, "--max-waiting", str(streams), "--max-wait-s", "600") as probe:
        clips = [[*cut(speech(seconds, number), 3200), END] for number in range(streams)]
        alone = [await talk(probe.url, clip) for clip in clips]
        await until_idle(probe)
        clients = await asyncio.gather(
            *(talk(probe.url, clips[number % streams]) for number in range(3 * streams))
        )
    first = {kind: [c for c in clients if c.kinds[0] == kind] for kind in ("ready", "queued", "error")}
    served = [(n, c) for n, c in enumerate(clients) if "done" in c.kinds]
    return {
        "streams": streams,
        "clients": len(clients),
        "admitted_at_once": len(first["ready"]),
        "queued_and_admitted_later": sum("ready" in c.kinds for c in first["queued"]),
        "refused": len(first["error"]),
        "refused_with_a_time_to_try_again": sum(
            c.code == 503 and bool(c.messages[0].get("retry_after")) for c in first["error"]
        ),
        "transcripts_equal_to_solo": sum(c.transcript == alone[n % streams].transcript for n, c in served),
        "finals": sum(len(c.transcript) for _, c in served),
        "seconds_to_first_answer": {
            kind: spread([c.first_answer for c in some]) for kind, some in first.items()
        },
    }


def run(streams: int, seconds: float) -> dict[str, Any]:
    return asyncio.run(_run(streams, seconds))
