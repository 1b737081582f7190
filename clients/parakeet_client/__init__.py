"""Python client of parakeet-live: send audio, get text while it is being spoken.

::

    async with connect("ws://127.0.0.1:8765/v1/stream") as stream:
        await stream.send(pcm)          # 16-bit PCM, mono, 16 kHz unless you say otherwise
        await stream.end()
        async for event in stream:      # Partial, Final, Error, and Done as the last one
            print(event)

``connect_sync`` is the same without ``async``; ``stream_file`` sends a WAV file.
"""

from parakeet_client.errors import ConnectionLostError, ParakeetError, RefusedError, ServerError
from parakeet_client.events import (
    Cancelled,
    Configured,
    Done,
    Eou,
    Error,
    Event,
    Final,
    Partial,
    Queued,
    Ready,
    Reconnected,
    Reconnecting,
    Resumed,
    ServerWarning,
    SpeechStarted,
    Word,
    as_message,
)
from parakeet_client.files import stream_file
from parakeet_client.options import Options
from parakeet_client.stream import Stream, connect
from parakeet_client.sync import SyncStream, connect_sync

__all__ = [
    "Cancelled",
    "Configured",
    "ConnectionLostError",
    "Done",
    "Eou",
    "Error",
    "Event",
    "Final",
    "Options",
    "ParakeetError",
    "Partial",
    "Queued",
    "Ready",
    "Reconnected",
    "Reconnecting",
    "RefusedError",
    "Resumed",
    "ServerError",
    "ServerWarning",
    "SpeechStarted",
    "Stream",
    "SyncStream",
    "Word",
    "as_message",
    "connect",
    "connect_sync",
    "stream_file",
]
