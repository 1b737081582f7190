"""``parakeet-live demo``: the whole way of live speech, from a recording through a real server to the screen."""

from __future__ import annotations

import asyncio
import wave
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from parakeet_client import Error, Event, Final, ParakeetError, Partial, stream_file
from parakeet_live.cli.bundles import ModelOption
from parakeet_live.cli.console import fail
from parakeet_live.demo import RECORDING, SPOKEN
from parakeet_live.web.process import ServerStartError, server_process
from parakeet_models.bundle import EMBEDDED_NAME


def demo(model: ModelOption = None) -> None:
    """Watch a real recording become text, live.

    Starts a server on a free local port, streams a shipped recording to it at the pace of speech, prints
    partials in place and finals as they come, and stops the server. Without --model it shows the embedded model.
    """
    console = Console(highlight=False, soft_wrap=True)
    try:
        with server_process(model or Path(EMBEDDED_NAME), max_streams=1) as server:
            with wave.open(str(RECORDING)) as file:
                seconds = file.getnframes() / file.getframerate()
            console.print(
                f"streaming {seconds:.0f} s of recorded speech to {server.url}, at the pace it was spoken\n"
            )
            asyncio.run(_show(console, server.url))
    except ServerStartError as error:
        fail(f"{error}; the lines above say why")
    except ParakeetError as error:
        fail(str(error))
    console.print(f"\nspoken in the recording: {', '.join(SPOKEN)}")


async def _show(console: Console, url: str) -> None:
    # Without a terminal there is no "in place": every partial gets a line of its own.
    with Live(console=console, transient=True, redirect_stderr=False) as live:
        async for event in stream_file(RECORDING, url):
            if isinstance(event, Partial) and console.is_terminal:
                live.update(Text(f"partial  {event.text}", style="dim"))
                continue
            live.update(Text())
            if line := _line(event):
                console.print(line)


def _line(event: Event) -> Text | None:
    """What stays on the screen of an event."""
    match event:
        case Partial():
            return Text(f"partial  {event.text}")
        case Final(text=text) if text:
            begin, end = event.words[0].start_ms / 1000, event.words[-1].end_ms / 1000
            times = f"   ({begin:.1f} to {end:.1f} s)"
            return Text.assemble(("final    ", "bold green"), (text, "bold"), (times, "dim"))
        case Error():
            return Text(f"error    {event.message}", style="bold red")
    return None
