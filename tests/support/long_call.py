"""A long call on a bad network, faster than real time: ``cd tests && python -m support.long_call URL --minutes 60``.

The same call runs twice through the Python client, undisturbed and with cuts at random
moments; all finals must be equal.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass

from parakeet_client import Done, Event, Final, Reconnected, connect
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.speech import spoken_pcm

BYTES_PER_SECOND = 32_000
BLOCK = BYTES_PER_SECOND // 10
RECORDINGS = 5


@dataclass(frozen=True, slots=True)
class Call:
    """How a call went."""

    results: list[Event]
    reconnected: int
    restarted: int

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.results if isinstance(event, Final)]


async def call(url: str, minutes: float, cuts: int, seed: int, proxy: CuttingProxy | None = None) -> Call:
    """Speak for so long; the proxy, if there is one, cuts the connection ``cuts`` times on the way."""
    speech = spoken_pcm(RECORDINGS)
    blocks = int(minutes * 60 * BYTES_PER_SECOND) // BLOCK
    at = set(random.Random(seed).sample(range(1, blocks), cuts)) if proxy else set()
    events: list[Event] = []
    async with connect(url) as stream:

        async def send() -> None:
            for number in range(blocks):
                start = number * BLOCK % len(speech)
                await stream.send((speech[start:] + speech)[:BLOCK])
                if proxy and number in at:
                    proxy.cut()
            await stream.end()

        sender = asyncio.create_task(send())
        async for event in stream:
            events.append(event)
        await sender
    reconnects = [event for event in events if isinstance(event, Reconnected)]
    return Call(
        [event for event in events if isinstance(event, Final | Done)],
        len(reconnects),
        sum(event.restarted for event in reconnects),
    )


async def compare(url: str, minutes: float, cuts: int, seed: int) -> tuple[Call, Call]:
    """The call undisturbed, and with cuts."""
    quiet = await call(url, minutes, 0, seed)
    async with cutting_proxy(url) as proxy:
        return quiet, await call(proxy.url, minutes, cuts, seed, proxy)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A long call on a bad network, compared with an undisturbed one."
    )
    parser.add_argument("url", help="ws://127.0.0.1:PORT/v1/stream")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    started = time.monotonic()
    quiet, cut = asyncio.run(compare(arguments.url, arguments.minutes, arguments.cuts, arguments.seed))
    print(
        f"{arguments.minutes:g} min of audio, {arguments.cuts} cuts, {cut.reconnected} reconnects "
        f"({cut.restarted} as new sessions), {len(cut.texts)} finals with {sum(map(len, cut.texts))} characters, "
        f"{time.monotonic() - started:.0f} s for both calls"
    )
    print(
        "finals, times and numbers are those of the undisturbed call:",
        "yes" if cut.results == quiet.results else "NO",
    )
    raise SystemExit(cut.results != quiet.results)


if __name__ == "__main__":
    main()
