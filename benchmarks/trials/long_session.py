"""One session of hours, as fast as the server takes it: memory and the cost of a minute at its begin and at its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from websockets.asyncio.client import connect

from benchmarks.trials.harness import BYTES_PER_SECOND, END, cut, resident, speech, spread, trial_server

BLOCK_SECONDS = 60


async def _run(hours: float) -> dict[str, Any]:
    minutes = int(hours * 60)
    audio = cut(speech(BLOCK_SECONDS), 16_000)
    costs: list[float] = []
    memory: list[float] = []
    finals = 0
    delays: list[float] = []
    with trial_server(1) as probe:
        async with connect(probe.url, compression=None, max_queue=None, ping_timeout=120) as client:
            ready = json.loads(await client.recv())
            before = await asyncio.to_thread(probe.snapshot)
            for _ in range(minutes):
                for piece in audio:
                    await client.send(piece)
                asked = asyncio.get_running_loop().time()
                await client.send('{"type":"finalize"}')
                while True:
                    message = json.loads(await client.recv())
                    if message["type"] == "final":
                        finals += bool(message["text"])
                        if message["reason"] == "finalize":
                            break
                delays.append(asyncio.get_running_loop().time() - asked)
                after = await asyncio.to_thread(probe.snapshot)
                assert before.server_cpu is not None
                assert after.server_cpu is not None
                costs.append(after.server_cpu - before.server_cpu)
                memory.append(resident(probe))
                before = after
            await client.send(END)
            async for text in client:
                done = json.loads(text)
    assert done["audio_ms"] == minutes * len(b"".join(audio)) * 1000 // BYTES_PER_SECOND
    early, late = slice(5, 15), slice(-10, None)
    return {
        "hours_of_audio": hours,
        "session": ready["session"],
        "finals": finals,
        "seconds_of_processor_for_a_minute": {
            "5_to_15": spread(costs[early]),
            "last_10": spread(costs[late]),
        },
        "cost_ratio": round(sum(costs[late]) / sum(costs[early]), 3),
        "seconds_for_a_minute": {"5_to_15": spread(delays[early]), "last_10": spread(delays[late])},
        "memory_mb": {
            "minute_5": round(memory[5], 1),
            "minute_15": round(memory[15], 1),
            "end": round(memory[-1], 1),
        },
    }


def run(hours: float) -> dict[str, Any]:
    return asyncio.run(_run(hours))
