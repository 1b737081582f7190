"""``parakeet-live listen``: a microphone or a pipe to text in the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from parakeet_client import (
    Error,
    Event,
    Final,
    Options,
    ParakeetError,
    Partial,
    ServerWarning,
    Stream,
    as_message,
    connect,
)
from parakeet_client.sources import PIPE_EXAMPLE, MicrophoneError, microphone, read_pipe
from parakeet_live.cli.bundles import ModelOption
from parakeet_live.cli.console import fail, notes, report_error
from parakeet_live.cli.turn_options import (
    EndpointingOption,
    EouHoldOption,
    EouSilenceOption,
    FormatOption,
    MaxUtteranceOption,
    SilenceHoldOption,
    SilenceOption,
    VadOption,
    as_options,
)
from parakeet_live.web.process import ServerStartError, server_process

INTERRUPTED = 130
"""Exit code of a program ended by Ctrl-C, as shells count."""


def listen(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[-]", help="`-` reads audio from standard input. Default: the microphone."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Stream of a running server. Default: a server of its own, for as long as it takes."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(envvar="PARAKEET_KEY", help="API key, if the server of --url needs one."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Of raw audio: pcm_s16le, pcm_f32le, mulaw or alaw. Default: pcm_s16le."),
    ] = None,
    sample_rate: Annotated[
        int | None, typer.Option(metavar="HZ", help="Of raw audio. Default: 16000.")
    ] = None,
    channels: Annotated[int | None, typer.Option(help="Of raw audio, interleaved. Default: 1.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Microphone, by name or number: `python -m sounddevice` lists them.")
    ] = None,
    formatting: FormatOption = "",
    endpointing: EndpointingOption = None,
    eou_silence_ms: EouSilenceOption = None,
    eou_hold_ms: EouHoldOption = None,
    silence_ms: SilenceOption = None,
    silence_hold_ms: SilenceHoldOption = None,
    max_utterance_ms: MaxUtteranceOption = None,
    vad: VadOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every event as one line of JSON on standard output.")
    ] = False,
    model: ModelOption = None,
) -> None:
    """Turn a microphone or piped audio into text, live.

    Finals go to standard output, one a line; the text in progress is shown in place while standard error is a
    terminal. Ctrl-C ends the recording, and the last words still come; once more ends at once.

    Examples: `arecord -f S16_LE -r 16000 -c 1 -t raw | parakeet-live listen -`

    `ffmpeg -i talk.mp3 -f wav - | parakeet-live listen - > talk.txt`
    """
    if source not in (None, "-"):
        fail(
            f"{source}: listen takes a microphone or `-`; for files there is `parakeet-live transcribe {source}`"
        )
    if source == "-" and sys.stdin.isatty():
        fail(f"standard input is a terminal; pipe audio into it, for example: {PIPE_EXAMPLE}")
    if source is None and (encoding or sample_rate or channels):
        fail("--encoding, --sample-rate and --channels are about piped audio; for that the source is `-`")
    options = as_options(
        endpointing=endpointing,
        eou_silence_ms=eou_silence_ms,
        eou_hold_ms=eou_hold_ms,
        silence_ms=silence_ms,
        silence_hold_ms=silence_hold_ms,
        max_utterance_ms=max_utterance_ms,
        vad=vad,
        format=formatting or None,
    )
    try:
        audio = read_pipe(sys.stdin.buffer) if source else microphone(_device(device))
        with ExitStack() as stack:
            if url is None:
                notes.print("starting a server…", style="dim")
                url = stack.enter_context(server_process(model, max_streams=1)).url
            listening = _Listening(audio, _Printer(as_json))
            asyncio.run(listening.run(url, key, encoding, sample_rate, channels, options))
    except ServerStartError as error:
        fail(f"{error}; the lines above say why")
    except (ParakeetError, MicrophoneError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _device(device: str | None) -> str | int | None:
    return int(device) if device and device.isdecimal() else device


class _Listening:
    """One session: audio in until it ends or Ctrl-C, events out until the last."""

    def __init__(self, audio: AsyncIterator[bytes], printer: _Printer) -> None:
        self._audio = audio
        self._printer = printer

    async def run(
        self,
        url: str,
        key: str | None,
        encoding: str | None,
        sample_rate: int | None,
        channels: int | None,
        options: Options,
    ) -> None:
        async with connect(
            url, key=key, encoding=encoding, sample_rate=sample_rate, channels=channels, **options
        ) as stream:
            sender = asyncio.create_task(self._send(stream))
            receiver = asyncio.create_task(self._receive(stream))
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, self._interrupted, sender, loop)
            try:
                await asyncio.wait((sender, receiver), return_when=asyncio.FIRST_COMPLETED)
                if sender.done():
                    await sender  # without a microphone nothing more would ever come
                await receiver
            finally:
                loop.remove_signal_handler(signal.SIGINT)
                sender.cancel()
                receiver.cancel()
                await asyncio.gather(sender, receiver, return_exceptions=True)

    async def _receive(self, stream: Stream) -> None:
        with self._printer:
            async with aclosing(aiter(stream)) as events:
                async for event in events:
                    self._printer.show(event)

    async def _send(self, stream: Stream) -> None:
        try:
            async for block in self._audio:
                await stream.send(block)
        except asyncio.CancelledError:
            pass  # Ctrl-C: what was said is still to become text
        await stream.end()

    @staticmethod
    def _interrupted(sender: asyncio.Task[None], loop: asyncio.AbstractEventLoop) -> None:
        sender.cancel()
        # The next one ends the program as usual.
        loop.remove_signal_handler(signal.SIGINT)


class _Printer:
    """Events on the terminal: finals stay, the text in progress is shown in place."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._live = Live(console=notes, transient=True, auto_refresh=False, redirect_stdout=False)

    def __enter__(self) -> None:
        if notes.is_terminal:
            self._live.start()

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, event: Event) -> None:
        if self._as_json:
            print(json.dumps(as_message(event), ensure_ascii=False), flush=True)
        elif isinstance(event, Partial):
            self._in_place(event.text)
        elif isinstance(event, Final) and event.text:
            self._in_place("")
            print(event.text if event.formatted is None else event.formatted, flush=True)
        elif isinstance(event, Error | ServerWarning):
            report_error(event.message)

    def _in_place(self, text: str) -> None:
        if self._live.is_started:
            self._live.update(Text(text, style="dim"), refresh=True)
