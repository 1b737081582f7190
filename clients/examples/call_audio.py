#!/usr/bin/env python3
"""A phone call with two channels to labelled text: the agent on the first, the caller on the second.

    python call_audio.py call.wav --url ws://127.0.0.1:8765/v1/stream

Takes a WAV file of 16-bit PCM, or raw interleaved mu-law at 8 kHz as telephone platforms send it (any other file
name, or - for standard input). Every channel is a session of its own, so the two may talk at the same time. A server
that asks for a key gets the one in the environment variable PARAKEET_KEY.
"""

import argparse
import asyncio
import os
import sys
import wave
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from parakeet_client import Error, Final, ParakeetError, Stream, connect
from parakeet_client.sources import read_pipe, split_channels

SPEAKERS = ("agent", "caller")
MULAW = {"encoding": "mulaw", "sample_rate": 8000}


async def wav_blocks(file: wave.Wave_read) -> AsyncIterator[bytes]:
    """A tenth of a second at a time."""
    while block := file.readframes(file.getframerate() // 10):
        yield block


async def send(blocks: AsyncIterator[bytes], streams: list[Stream], sample_bytes: int) -> None:
    """Every channel to its session; a pipe may cut anywhere, so what is no whole group of samples waits."""
    group, rest = sample_bytes * len(streams), b""
    async for block in blocks:
        audio = rest + block
        whole = len(audio) // group * group
        audio, rest = audio[:whole], audio[whole:]
        for stream, channel in zip(streams, split_channels(audio, len(streams), sample_bytes), strict=True):
            await stream.send(channel)
    for stream in streams:
        await stream.end()


async def receive(speaker: str, stream: Stream) -> None:
    """Print what one of them says, with the time at which it was said."""
    async for event in stream:
        if isinstance(event, Final) and event.text:
            print(f"{event.words[0].start_ms / 1000:7.1f} s  {speaker:7} {event.text}", flush=True)
        elif isinstance(event, Error):
            print(f"{speaker}: {event.message}", file=sys.stderr)


@contextmanager
def opened(path: str) -> Iterator[tuple[AsyncIterator[bytes], int, dict[str, Any]]]:
    """The call's audio in blocks, bytes per sample, and what the server must be told about it."""
    if path == "-":
        yield read_pipe(sys.stdin.buffer), 1, MULAW
    elif path.endswith(".wav"):
        with wave.open(path) as file:
            if file.getnchannels() != len(SPEAKERS) or file.getsampwidth() != 2:
                raise ValueError(f"{path}: not a WAV file of 16-bit PCM with {len(SPEAKERS)} channels")
            yield wav_blocks(file), 2, {"encoding": "pcm_s16le", "sample_rate": file.getframerate()}
    else:
        with open(path, "rb") as file:
            yield read_pipe(file), 1, MULAW


async def run(blocks: AsyncIterator[bytes], sample_bytes: int, stated: dict[str, Any], url: str) -> None:
    async with AsyncExitStack() as stack:
        key = os.environ.get("PARAKEET_KEY")
        streams = [await stack.enter_async_context(connect(url, key=key, **stated)) for _ in SPEAKERS]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(send(blocks, streams, sample_bytes))
            for speaker, stream in zip(SPEAKERS, streams, strict=True):
                tasks.create_task(receive(speaker, stream))


def main() -> None:
    parser = argparse.ArgumentParser(description="Text of a two-channel call, labelled by speaker.")
    parser.add_argument("file", help="WAV file, raw mu-law, or - for raw mu-law on standard input")
    parser.add_argument("--url", default="ws://127.0.0.1:8765/v1/stream")
    args = parser.parse_args()
    try:
        with opened(args.file) as (blocks, sample_bytes, stated):
            asyncio.run(run(blocks, sample_bytes, stated, args.url))
    except* (OSError, ParakeetError, ValueError, wave.Error) as group:
        sys.exit(f"call_audio.py: {group.exceptions[0]}")


if __name__ == "__main__":
    main()
