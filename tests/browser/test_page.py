"""The page in a real browser: a recording into its microphone, words onto the page."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

import parakeet_page
from support.browser import browser, microphone_wav, opened, page_url, require_chromium
from support.server_process import COMMAND, running_server

AUDIO = Path(__file__).parents[1] / "data" / "audio"
SPOKEN = {"fsddstr_jackson_00.flac": "five zero five", "fsddstr_jackson_10.flac": "one nine eight two"}
PATIENCE_MS = 60_000
"""For whatever waits for recognition: machines that run tests are busy."""

pytestmark = pytest.mark.usefixtures("_chromium")


@pytest.fixture(scope="module")
def _chromium() -> None:
    require_chromium()


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return microphone_wav(tmp_path_factory.mktemp("mic") / "mic.wav", *(AUDIO / name for name in SPOKEN))


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def chromium(playwright: Playwright, microphone: Path) -> Iterator[Browser]:
    with browser(playwright, microphone) as running:
        yield running


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def finals(page: Page) -> list[str]:
    return page.locator("#transcript li.final .text").all_inner_texts()


def alike(found: list[str], spoken: list[str]) -> bool:
    """The same turns, and at most a word in four wrong: a busy machine's audio thread may drop some sound."""
    return len(found) == len(spoken) and jiwer.wer(spoken, found) <= 0.25


def listen(page: Page, count: int) -> None:
    """Press start and wait for so many finals."""
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#status")).to_have_text("Listening.", timeout=PATIENCE_MS)
    expect(page.locator("#transcript li.final")).to_have_count(count, timeout=PATIENCE_MS)


@pytest.mark.parametrize("rate", [None, 44_100, 48_000, 96_000])
def test_spoken_words_appear(chromium: Browser, server_url: str, rate: int | None) -> None:
    with opened(chromium, page_url(server_url)) as page:
        if rate is not None:
            page.evaluate(
                """rate => { const Own = AudioContext;
                  window.AudioContext = class extends Own {
                    constructor(options) { super({ ...options, sampleRate: rate }); } } }""",
                rate,
            )
        listen(page, 2)
        assert alike(finals(page), list(SPOKEN.values()))
        expect(page.locator("#latency")).to_have_text(re.compile(r"^\d+ ms$"))
        assert page.locator("#transcript li.final .text span").first.get_attribute("title").endswith("% sure")  # type: ignore[union-attr]
        page.get_by_role("button", name="Stop").click()
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)


def test_transcript_is_saved_in_every_form(chromium: Browser, server_url: str, tmp_path: Path) -> None:
    with opened(chromium, page_url(server_url), accept_downloads=True) as page:
        listen(page, 2)
        page.get_by_role("button", name="Stop").click()
        saved = {}
        for kind in ("TXT", "SRT", "VTT", "JSON"):
            with page.expect_download() as download:
                page.get_by_role("button", name=kind, exact=True).click()
            path = tmp_path / download.value.suggested_filename
            download.value.save_as(path)
            saved[kind] = path.read_text()
        texts = finals(page)
        assert alike(texts, list(SPOKEN.values()))
        assert saved["TXT"].splitlines() == texts
        assert saved["VTT"].startswith("WEBVTT\n\n00:00:0")
        assert re.match(r"1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\n[a-z ]+\n\n2\n", saved["SRT"])
        document = json.loads(saved["JSON"])
        assert [utterance["text"] for utterance in document["utterances"]] == texts
        assert [word["text"] for word in document["utterances"][0]["words"]] == texts[0].split()


def test_file_instead_of_microphone(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        page.locator("#file").set_input_files(AUDIO / "fsddstr_jackson_10.flac")
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)
        assert finals(page) == ["one nine eight two"]


def test_readable_text_on_request(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        page.get_by_label("Capitals and full stops").check()
        page.get_by_label("Numbers as digits").check()
        page.locator("#file").set_input_files(AUDIO / "fsddstr_jackson_10.flac")
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)
        assert finals(page) == ["1982"]
        assert page.locator("#transcript .text").get_attribute("title") == "one nine eight two"
        page.get_by_label("Numbers as digits").uncheck()
        page.get_by_label("Capitals and full stops").uncheck()
        listen(page, 3)
        assert alike(finals(page)[1:], list(SPOKEN.values()))
        page.get_by_label("Numbers as digits").check()  # in mid-stream
        expect(page.get_by_role("alert")).to_be_hidden()


def test_file_that_is_no_audio_is_explained(chromium: Browser, server_url: str, tmp_path: Path) -> None:
    (tmp_path / "letter.mp3").write_text("dear reader")
    with opened(chromium, page_url(server_url)) as page:
        page.locator("#file").set_input_files(tmp_path / "letter.mp3")
        expect(page.get_by_role("alert")).to_contain_text("cannot decode")


def test_permission_denied_is_explained_and_opens_no_connection(
    playwright: Playwright, server_url: str
) -> None:
    with browser(playwright, None, permitted=False) as running, opened(running, page_url(server_url)) as page:
        sockets: list[str] = []
        page.on("websocket", lambda socket: sockets.append(socket.url))
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("alert")).to_contain_text("not allowed")
        expect(page.get_by_role("button", name="Start")).to_be_enabled()
        assert sockets == []


def test_page_without_a_microphone_api_is_explained(chromium: Browser, server_url: str) -> None:
    # What browsers do to pages over http from another machine.
    with opened(chromium, page_url(server_url)) as page:
        page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("alert")).to_contain_text("https")


def test_stop_before_permission_releases_the_device(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        page.evaluate(
            """() => { const own = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
              navigator.mediaDevices.getUserMedia = async (wanted) => {
                await new Promise(resolve => { window.permit = resolve; });
                window.given = await own(wanted);
                return window.given; } }"""
        )
        sockets: list[str] = []
        page.on("websocket", lambda socket: sockets.append(socket.url))
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="Stop").click()
        page.evaluate("window.permit()")
        expect(page.locator("#status")).to_have_text("Stopped.")
        page.wait_for_function("window.given.getTracks().every(track => track.readyState === 'ended')")
        assert sockets == []


SPEAK_AND_STOP = """async ([wav, delay]) => {
  const context = new AudioContext();
  const bytes = Uint8Array.from(atob(wav), (letter) => letter.charCodeAt(0));
  const source = context.createBufferSource();
  source.buffer = await context.decodeAudioData(bytes.buffer);
  const microphone = context.createMediaStreamDestination();
  source.connect(microphone);
  navigator.mediaDevices.getUserMedia = async () => microphone.stream;
  const start = document.getElementById("start");
  const status = document.getElementById("status");
  source.onended = () => setTimeout(() => start.click(), delay);
  start.click();
  while (status.textContent !== "Listening.") await new Promise((resolve) => setTimeout(resolve, 20));
  source.start();
}"""


@pytest.mark.parametrize("delay_ms", [0, 100, 300])
def test_everything_before_the_press_of_stop_is_heard(
    chromium: Browser, server_url: str, tmp_path: Path, delay_ms: int
) -> None:
    speech, rate = soundfile.read(AUDIO / "fsddstr_jackson_10.flac", dtype="int16")
    loud = np.flatnonzero(np.abs(speech) > 300)
    soundfile.write(tmp_path / "speech.wav", speech[: loud[-1] + 1], rate)  # ends with the last sound
    wav = base64.b64encode((tmp_path / "speech.wav").read_bytes()).decode()
    with opened(chromium, page_url(server_url)) as page:
        page.get_by_role("heading").first.click()  # a gesture, so that the page's audio may run
        page.evaluate(SPEAK_AND_STOP, [wav, delay_ms])
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)
        # A busy machine's audio thread may spoil a word on the way; what matters here is the end.
        (text,) = finals(page)
        assert text.split()[-1] == "two"


def test_session_goes_on_on_a_server_that_was_restarted(
    chromium: Browser, tmp_path: Path, free_port: int
) -> None:
    with opened_on_killed_server(chromium, tmp_path, free_port) as page:
        expect(page.locator("#status")).to_contain_text("Reconnecting", timeout=PATIENCE_MS)
        with running_server(tmp_path / "second.log", "--port", str(free_port)):
            expect(page.locator("#status")).to_have_text("Listening.", timeout=PATIENCE_MS)
            expect(page.locator("#transcript li.final")).to_have_count(2, timeout=PATIENCE_MS)
            assert alike(finals(page), list(SPOKEN.values()))
            page.get_by_role("button", name="Stop").click()
            expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)


@contextmanager
def opened_on_killed_server(chromium: Browser, tmp_path: Path, port: int) -> Iterator[Page]:
    """A page that listens; after its first words the server is killed without warning."""
    with subprocess.Popen([str(COMMAND), "serve", "--port", str(port)], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().decode().removeprefix("listening on ").strip()
            with opened(chromium, page_url(url)) as page:
                page.get_by_role("button", name="Start").click()
                expect(page.locator("#transcript li.partial")).to_have_count(1, timeout=PATIENCE_MS)
                server.kill()
                server.wait()
                yield page
        finally:
            server.kill()


def test_pause_and_resume(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#status")).to_have_text("Listening.", timeout=PATIENCE_MS)
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#status")).to_contain_text("Paused")
        page.wait_for_timeout(500)  # the reading is renewed four times a second
        sent = page.locator("#audio").inner_text()
        page.wait_for_timeout(1000)
        assert page.locator("#audio").inner_text() == sent
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#status")).to_have_text("Listening.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_out(chromium: Browser, server_url: str, scheme: str) -> None:
    """axe-core finds no serious or critical fault, empty and with a transcript, wide and narrow."""
    with opened(chromium, page_url(server_url), color_scheme=scheme) as page:
        check_accessibility(page)
        page.locator("#file").set_input_files(AUDIO / "fsddstr_jackson_10.flac")
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            check_accessibility(page)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def check_accessibility(page: Page) -> None:
    violations = Axe().run(page).response["violations"]
    bad = [rule for rule in violations if rule["impact"] in ("serious", "critical")]
    assert bad == [], [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in bad]


def test_keyboard_alone_is_enough(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "start"
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Listening.", timeout=PATIENCE_MS)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)


def test_only_what_the_server_lacks_is_sent_again(chromium: Browser, server_url: str) -> None:
    with opened(chromium, page_url(server_url)) as page:
        sent = page.evaluate(
            """async () => {
              const { AudioLog } = await import("/js/audio-log.js");
              const log = new AudioLog();
              const second = () => new Uint8Array(32000).buffer;
              const shown = (list) => list.map((data) => typeof data === "string" ? data : data.byteLength);
              log.audio(second()); log.control("configure"); log.audio(second()); log.control("finalize");
              log.audio(second());
              const lost = shown(log.since(40000, 1));
              log.settled(1500);                        // a final has come
              const settled = shown(log.since(64000, 2));
              const offset = log.restart();             // the server was restarted
              return { lost, settled, offset, anew: shown(log.since(0, 0)) };
            }"""
        )
    assert sent == {
        "lost": [24_000, "finalize", 32_000],
        "settled": [32_000],
        "offset": 1000,
        "anew": [32_000, "finalize", 32_000],
    }


def test_five_minutes_leave_nothing_behind(chromium: Browser, server_url: str, tmp_path: Path) -> None:
    """Two long files in one page: the second five minutes need no more memory or elements than the first."""
    speech, rate = soundfile.read(AUDIO / "fsddstr_jackson_10.flac", dtype="int16")
    turn = np.concatenate([speech, np.zeros(10 * rate - len(speech), np.int16)])
    soundfile.write(tmp_path / "long.wav", np.tile(turn, 30), rate)
    with opened(chromium, page_url(server_url)) as page:
        memory = page.context.new_cdp_session(page)
        used = []
        for _ in range(2):
            page.locator("#file").set_input_files(tmp_path / "long.wav")
            expect(page.locator("#transcript li.final")).to_have_count(30, timeout=3 * PATIENCE_MS)
            expect(page.locator("#status")).to_have_text("Done.", timeout=PATIENCE_MS)
            page.get_by_role("button", name="Clear").click()
            memory.send("HeapProfiler.collectGarbage")
            heap = memory.send("Runtime.getHeapUsage")["usedSize"]
            used.append((heap, page.evaluate("document.querySelectorAll('*').length")))
        assert used[1][1] == used[0][1]
        assert used[1][0] < 1.2 * used[0][0]


def test_modules_alone_in_another_page(chromium: Browser, tmp_path: Path, free_port: int) -> None:
    """The example of docs/clients.md, as it stands there but for the port, on a web server of its own."""
    text = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    example = text.split("```html\n", 1)[1].split("```", 1)[0]
    site = tmp_path / "site"
    shutil.copytree(parakeet_page.directory() / "js", site / "js")
    origin = f"http://127.0.0.1:{free_port}"
    with running_server(tmp_path / "log", "--allowed-origins", origin) as url, served(site, free_port):
        (site / "index.html").write_text(
            "<!doctype html>" + example.replace("ws://127.0.0.1:8765/v1/stream", url)
        )
        with opened(chromium, origin) as page:
            page.get_by_role("button", name="Talk").click()
            expect(page.locator("#text")).to_contain_text(
                re.compile("zero five|eight two"), timeout=PATIENCE_MS
            )
            page.get_by_role("button", name="Talk").click()


@contextmanager
def served(directory: Path, port: int) -> Iterator[None]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            yield
        finally:
            web.shutdown()
            thread.join()
