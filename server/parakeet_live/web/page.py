"""The page at ``/``."""

START_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>parakeet-live</title>
<style>
  :root { color-scheme: light dark }
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }
  pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .25rem }
</style>
<h1>parakeet-live</h1>
<p>Live speech to text over a WebSocket. Send audio as it is spoken; text comes back while it is being spoken.</p>
<p>Connect to <code id="url">/v1/stream</code> and send raw 16-bit PCM, mono, 16 kHz, as binary messages
(or state another format in the URL). JSON messages with the text come back.</p>
<pre>pip install websockets
python clients/stream.py recording.wav --url <span id="example">ws://HOST:PORT/v1/stream</span></pre>
<p>Is it up, and how busy: <a href="/healthz">/healthz</a>. The messages, formats, limits and close codes are
described in <code>docs/protocol.md</code> of the source tree.</p>
<script>
  const url = location.origin.replace(/^http/, "ws") + "/v1/stream";
  for (const id of ["url", "example"]) document.getElementById(id).textContent = url;
</script>
</html>
"""
