"""Send a WAV file, at the pace of speech or as fast as the server takes it."""

from __future__ import annotations

import asyncio
import time
import wave
from collections.abc import AsyncIterator
from contextlib import aclosing
from os import PathLike
from typing import Literal, Unpack

from parakeet_client.errors import ConnectionLostError
from parakeet_client.events import Event
from parakeet_client.options import Options
from parakeet_client.stream import Stream, connect

BLOCK_SECONDS = 0.1
"""Audio in one message: short enough to be live, long enough to be cheap."""


async def stream_file(
    path: str | PathLike[str],
    url: str,
    *,
    pace: Literal["live", "fast"] = "live",
    key: str | None = None,
    **options: Unpack[Options],
) -> AsyncIterator[Event]:
    """Events of a 16-bit PCM WAV file, from the first :class:`Partial` to :class:`Done`.

    ``pace="live"`` sends a second of audio per second, ``"fast"`` as much as the server takes; ``key`` is an
    API key, where the server wants one; ``options`` are those of :func:`connect`. Raises ValueError for any other kind
    of file, and what :func:`connect` and iterating a :class:`Stream` raise.
    """
    try:
        file = wave.open(str(path), "rb")  # noqa: SIM115 - closed below, on every way out
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path}: not a PCM WAV file ({error}); {_REMEDY}") from error
    with file:
        if file.getsampwidth() != 2:
            raise ValueError(f"{path}: {8 * file.getsampwidth()}-bit samples; {_REMEDY}")
        async with connect(
            url,
            encoding="pcm_s16le",
            sample_rate=file.getframerate(),
            channels=file.getnchannels(),
            key=key,
            **options,
        ) as stream:
            sender = asyncio.create_task(_send(file, stream, pace))
            try:
                async with aclosing(aiter(stream)) as events:
                    async for event in events:
                        yield event
                await sender
            finally:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)


_REMEDY = "convert it first, for example: ffmpeg -i INPUT -c:a pcm_s16le -ac 1 -ar 16000 OUTPUT.wav"


async def _send(file: wave.Wave_read, stream: Stream, pace: Literal["live", "fast"]) -> None:
    block = max(1, int(file.getframerate() * BLOCK_SECONDS))
    due = time.monotonic()
    try:
        while samples := file.readframes(block):
            await stream.send(samples)
            due += BLOCK_SECONDS
            if pace == "live":
                await asyncio.sleep(due - time.monotonic())
        await stream.end()
    except ConnectionLostError:
        return  # whoever iterates over the stream is told, with the server's reason
