#!/usr/bin/env python3
"""Send audio to a parakeet-live server and print the text. Needs Python 3.11 and `pip install websockets`.

    python stream.py recording.wav --url ws://127.0.0.1:8765/v1/stream
    arecord -f S16_LE -r 16000 -c 1 -t raw | python stream.py -
    ffmpeg -i talk.mp3 -f s16le -ac 1 -ar 16000 - | python stream.py - --pace fast

Finals go to standard output, one a line; partials to standard error while it is a terminal.
Exit code: 0 done, 1 refused or failed, 2 wrong use, 130 stopped by Ctrl-C. A lost connection ends it with 1 and a
message; `parakeet-live listen` and the Python package parakeet_client go on over another connection.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

BLOCK_SECONDS = 0.1
KEY = os.environ.get("PARAKEET_KEY")  # API key, for a server that needs one
BYTES_PER_SAMPLE = {"pcm_s16le": 2, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}


async def send(socket, file, args):
    """Audio as binary messages, then "end". A WAV file goes as it is: the server reads its header."""
    sample = BYTES_PER_SAMPLE[args.encoding or "pcm_s16le"]
    rate = sample * (args.sample_rate or 16_000) * (args.channels or 1)  # bytes per second
    started, sent = time.monotonic(), 0
    read = getattr(file, "read1", file.read)  # what a pipe has now, not only full blocks
    while data := await asyncio.to_thread(read, max(1, int(rate * BLOCK_SECONDS))):
        if sent == 0 and data[:4] == b"RIFF" and b"fmt " in data[:-16]:
            at = data.index(b"fmt ") + 16
            rate = int.from_bytes(data[at : at + 4], "little") or rate
        try:
            await socket.send(data)
        except ConnectionClosed:
            return  # receive() says why
        sent += len(data)
        if args.pace == "live":
            await asyncio.sleep(max(0.0, started + sent / rate - time.monotonic()))
    with contextlib.suppress(ConnectionClosed):
        await socket.send('{"type":"end"}')


async def receive(socket):
    """Print what comes, until "done"."""
    in_place = sys.stderr.isatty()
    while True:
        try:
            message = json.loads(await socket.recv())
        except ConnectionClosed as closed:
            raise ConnectionError(f"connection lost, the text above is not all there is ({closed})") from None
        if message["type"] == "partial" and in_place:
            shown = message["text"][-(shutil.get_terminal_size().columns - 1) :]
            print(f"\r\x1b[K{shown}", end="", file=sys.stderr, flush=True)
        elif message["type"] == "final" and message["text"]:
            print("\r\x1b[K" if in_place else "", end="", file=sys.stderr, flush=True)
            print(message["text"], flush=True)
        elif message["type"] == "error":
            if message["fatal"]:
                raise ConnectionError(message["message"])
            print(f"server: {message['message']}", file=sys.stderr)
        elif message["type"] == "done":
            return


async def run(args, file):
    stated = {name: getattr(args, name) for name in ("encoding", "sample_rate", "channels")}
    query = urlencode({name: value for name, value in stated.items() if value})
    url = f"{args.url}?{query}" if query else args.url
    # max_queue=None: results are taken at any time, whatever the sender is doing.
    headers = {"Authorization": f"Bearer {KEY}"} if KEY else None
    async with connect(
        url, additional_headers=headers, compression=None, max_queue=None, ping_timeout=120
    ) as socket:
        await asyncio.gather(receive(socket), send(socket, file, args))


def main():
    parser = argparse.ArgumentParser(description="Print the text of a WAV file or of raw audio.")
    parser.add_argument("file", help="WAV file, raw audio, or - for standard input")
    parser.add_argument("--url", default="ws://127.0.0.1:8765/v1/stream")
    parser.add_argument("--encoding", choices=list(BYTES_PER_SAMPLE), help="of raw audio (pcm_s16le)")
    parser.add_argument("--sample-rate", type=int, metavar="HZ", help="of raw audio (16000)")
    parser.add_argument("--channels", type=int, metavar="N", help="of raw audio (1)")
    parser.add_argument(
        "--pace", choices=["live", "fast"], default="live", help="as spoken, or at full speed"
    )
    args = parser.parse_args()
    try:
        with sys.stdin.buffer if args.file == "-" else open(args.file, "rb") as file:
            asyncio.run(run(args, file))
    except (OSError, WebSocketException) as error:
        sys.exit(f"stream.py: {error or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
