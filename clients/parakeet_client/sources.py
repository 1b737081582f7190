"""Where a program's audio comes from: a pipe or file that is being written, a microphone, the channels of a call."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from typing import IO, Any

MICROPHONE_RATE = 16_000
BLOCK_SECONDS = 0.05
PIPE_BYTES = 64 * 1024
READ_AHEAD_BLOCKS = 8


async def read_pipe(file: IO[bytes]) -> AsyncIterator[bytes]:
    """What ``file`` has, as it comes: whoever reads is not made to wait until a block is full.

    ``file`` is a real file or pipe that nothing was read from. A thread reads ahead by at most 512 KiB. It is a daemon
    and holds no lock of the file, so a program can end while the thread waits for a silent pipe.
    """
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(READ_AHEAD_BLOCKS)
    descriptor = file.fileno()

    def work() -> None:
        data = b"more"
        while data:
            room.acquire()
            data = os.read(descriptor, PIPE_BYTES)
            try:
                loop.call_soon_threadsafe(blocks.put_nowait, data)
            except RuntimeError:
                return  # the loop is closed: nobody listens any more

    threading.Thread(target=work, daemon=True, name="pipe").start()
    while data := await blocks.get():
        yield data
        room.release()


PIPE_EXAMPLE = "arecord -f S16_LE -r 16000 -c 1 -t raw | parakeet-live listen -"


class MicrophoneError(Exception):
    """No microphone can be had; the message says what to do."""


def microphone(device: str | int | None = None) -> AsyncIterator[bytes]:
    """16-bit PCM of a microphone, mono, 16 kHz, 50 ms at a time; goes on until the iteration is left.

    ``device`` is a name (or part of one) or number as ``python -m sounddevice`` lists them. Needs the package
    ``sounddevice``. Raises MicrophoneError, at once if the package is missing.
    """
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise MicrophoneError(
            f"the microphone needs the package sounddevice and PortAudio ({error}): pip install "
            "'parakeet-live[microphone]', on Debian and Ubuntu also apt install libportaudio2. Or pipe audio into the "
            f"program, for example: {PIPE_EXAMPLE}"
        ) from error
    return _captured(sounddevice, device)


async def _captured(sounddevice: Any, device: str | int | None) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()

    def captured(block: Any, frames: int, time: object, status: object) -> None:
        loop.call_soon_threadsafe(blocks.put_nowait, bytes(block))

    try:
        stream = sounddevice.RawInputStream(
            samplerate=MICROPHONE_RATE,
            channels=1,
            dtype="int16",
            blocksize=int(MICROPHONE_RATE * BLOCK_SECONDS),
            device=device,
            callback=captured,
        )
    except (ValueError, sounddevice.PortAudioError) as error:
        raise MicrophoneError(
            f"no such microphone ({error}); `python -m sounddevice` lists what there is"
        ) from error
    with stream:
        while True:
            yield await blocks.get()


def split_channels(audio: bytes, channels: int, sample_bytes: int) -> list[bytes]:
    """Interleaved samples apart, one piece for each channel.

    ``audio`` must hold whole groups of samples. ``sample_bytes`` is 1 for mu-law and A-law, 2 for 16-bit PCM.
    Raises ValueError for a part of a group.
    """
    group = channels * sample_bytes
    if len(audio) % group:
        raise ValueError(
            f"{len(audio)} bytes are not whole groups of {channels} samples of {sample_bytes} bytes"
        )
    pieces = [bytearray(len(audio) // channels) for _ in range(channels)]
    for channel, piece in enumerate(pieces):
        for byte in range(sample_bytes):
            piece[byte::sample_bytes] = audio[channel * sample_bytes + byte :: group]
    return [bytes(piece) for piece in pieces]
