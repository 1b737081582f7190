"""A service of your own between a browser and parakeet-live: it decides who may speak, and sees all text.

    uvicorn --app-dir clients/examples relay:app --port 8000

PARAKEET_URL is the stream of the server, ws://127.0.0.1:8765/v1/stream if it is not set; PARAKEET_KEY a key for it;
TICKETS the tickets that are good, with commas between them (let-me-in).

The browser connects to /audio with a ticket of yours, sends 16-bit PCM at 16 kHz as binary messages and the text "end",
and gets one JSON object for each finished utterance.
"""

import asyncio
import os

from fastapi import FastAPI, WebSocket, WebSocketDisconnect

from parakeet_client import Final, ParakeetError, Stream, connect

PARAKEET_URL = os.environ.get("PARAKEET_URL", "ws://127.0.0.1:8765/v1/stream")
PARAKEET_KEY = os.environ.get("PARAKEET_KEY")
TICKETS = set(os.environ.get("TICKETS", "let-me-in").split(","))

app = FastAPI()


@app.websocket("/audio")
async def audio(browser: WebSocket, ticket: str = "") -> None:
    await browser.accept()
    if ticket not in TICKETS:
        await browser.close(1008, "this ticket is not valid")
        return
    try:
        async with connect(PARAKEET_URL, key=PARAKEET_KEY) as stream:
            sender = asyncio.create_task(relay_audio(browser, stream))
            try:
                async for event in stream:
                    if isinstance(event, Final) and event.text:
                        keep(event)
                        await browser.send_json({"text": event.text, "at_ms": event.words[0].start_ms})
                await browser.close()
            finally:
                sender.cancel()
    except ParakeetError as error:
        await browser.close(1013, f"no speech recognition at the moment: {error}"[:120])
    except (WebSocketDisconnect, RuntimeError):
        pass  # the browser left while text was on its way


async def relay_audio(browser: WebSocket, stream: Stream) -> None:
    """Browser to recogniser. What was said before the browser left still becomes text."""
    while True:
        message = await browser.receive()
        if message.get("bytes"):
            await stream.send(message["bytes"])
        elif message["type"] == "websocket.disconnect" or message.get("text") == "end":
            await stream.end()
            return


def keep(final: Final) -> None:
    """Where your service stores or acts on what was said."""
    print(f"{final.audio_ms / 1000:.1f} s: {final.text}", flush=True)
