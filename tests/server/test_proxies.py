"""The recipes of docs/proxies.md, run by the real nginx and HAProxy in front of a real server."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from parakeet_models.bundle import Bundle
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, cut, read_all, session

RECIPES = Path(__file__).parents[2] / "docs" / "proxies"
PCM = (noise(3.0, 1) * 32767).astype("<i2").tobytes()
NAME = "speech.example.org"
SILENCE = 1
"""Seconds of silence after which the proxies of these tests cut a connection."""
PING = 0.25
"""Seconds between two pings of the server, in the same proportion as the documented 20 s to 60 s."""


@dataclass
class Proxy:
    """A running proxy in front of a server."""

    port: int
    trust: ssl.SSLContext
    log: Path
    server_log: Path
    direct_url: str

    @property
    def url(self) -> str:
        return f"wss://{NAME}:{self.port}/v1/stream"

    def connect(self, **options: object) -> connect:
        fixed = {"host": "127.0.0.1", "port": self.port, "ssl": self.trust, "compression": None}
        return connect(self.url, **fixed | options)  # type: ignore[arg-type]

    def get(self, path: str, **headers: str) -> httpx.Response:
        with httpx.Client(verify=self.trust) as client:
            return client.get(
                f"https://127.0.0.1:{self.port}{path}",
                headers={"Host": f"{NAME}:{self.port}", **headers},
                extensions={"sni_hostname": NAME},
            )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def edited(text: str, changes: Mapping[str, str]) -> str:
    """The recipe for this machine. Every place that a test changes must be in it."""
    for old, new in changes.items():
        assert old in text, f"the recipe has no {old!r}"
        text = text.replace(old, new)
    return text


def write_config(kind: str, directory: Path, port: int, backend: str) -> list[str]:
    """Writes the recipe for this test; returns the command that runs it in the foreground."""
    authority = trustme.CA()
    certificate = authority.issue_cert(NAME)
    certificate.cert_chain_pems[0].write_to_path(directory / "chain.pem")
    certificate.private_key_pem.write_to_path(directory / "key.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(directory / "both.pem")
    authority.cert_pem.write_to_path(directory / "authority.pem")
    if kind == "nginx":
        recipe = edited(
            (RECIPES / "nginx.conf").read_text(),
            {
                "/run/nginx.pid": f"{directory}/pid",
                "/var/log/nginx/error.log": f"{directory}/error.log",
                "/var/log/nginx/access.log": f"{directory}/access.log",
                "127.0.0.1:8765": backend,
                "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
                "/etc/ssl/speech.example.org": str(directory),
                "proxy_read_timeout 60s": f"proxy_read_timeout {SILENCE}s",
            },
        )
        (directory / "nginx.conf").write_text(recipe)
        return ["nginx", "-p", str(directory), "-c", str(directory / "nginx.conf"), "-g", "daemon off;"]
    recipe = edited(
        (RECIPES / "haproxy.cfg").read_text(),
        {
            "127.0.0.1:8765": backend,
            "bind :443": f"bind 127.0.0.1:{port}",
            "/etc/haproxy/speech.example.org.pem": str(directory / "both.pem"),
            "timeout tunnel 60s": f"timeout tunnel {SILENCE}s",
            "timeout client 30s": f"timeout client {SILENCE}s",
            "timeout server 30s": f"timeout server {SILENCE}s",
        },
    )
    (directory / "haproxy.cfg").write_text(recipe)
    return ["haproxy", "-db", "-f", str(directory / "haproxy.cfg")]


@contextmanager
def proxy(kind: str, directory: Path, bundle: Bundle, ping: float = PING) -> Iterator[Proxy]:
    if shutil.which(kind) is None:
        pytest.skip(f"{kind} is not installed: apt-get install {'nginx-light' if kind == 'nginx' else kind}")
    options = [
        "--model",
        str(bundle.directory),
        "--trusted-proxies",
        "127.0.0.1",
        "--ping-interval-s",
        str(ping),
    ]
    options += ["--allowed-hosts", NAME]
    with running_server(directory / "server.log", *options) as url:
        port = free_port()
        command = write_config(kind, directory, port, url.removeprefix("ws://").partition("/")[0])
        log = directory / ("access.log" if kind == "nginx" else "output")
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            try:
                wait_until_open(port, process, directory / "output")
                trust = ssl.create_default_context(cafile=directory / "authority.pem")
                yield Proxy(port, trust, log, directory / "server.log", url)
            finally:
                process.terminate()
                process.wait(20)


def wait_until_open(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, output.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the proxy does not listen")


@pytest.fixture(params=["nginx", "haproxy"], scope="module")
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle
) -> Iterator[Proxy]:
    with proxy(request.param, tmp_path_factory.mktemp(request.param), random_bundle) as found:
        yield found


async def ready(client: ClientConnection) -> None:
    assert '"ready"' in str(await client.recv())


async def test_a_stream_through_the_proxy_is_the_same_stream(front: Proxy) -> None:
    expected = await session(front.direct_url, [*cut(PCM, 3200), END])
    async with front.connect() as client:
        reader = asyncio.create_task(read_all(client))
        for piece in cut(PCM, 3200):
            await client.send(piece)
        await client.send(END)
        outcome = await reader
    assert outcome.code == 1000
    assert outcome.results == expected.results


async def test_a_silent_stream_outlives_the_limit_of_the_proxy(front: Proxy) -> None:
    async with front.connect(ping_interval=None) as client:
        await ready(client)
        await asyncio.sleep(3 * SILENCE)
        await client.send(PCM)
        await client.send(END)
        outcome = await read_all(client)
    assert outcome.code == 1000
    assert outcome.of("final")


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
async def test_without_pings_the_proxy_would_cut_it(kind: str, tmp_path: Path, random_bundle: Bundle) -> None:
    """The test above can fail: the limit is at work."""
    with proxy(kind, tmp_path, random_bundle, ping=3600) as front:
        async with front.connect(ping_interval=None) as client:
            await ready(client)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(client.recv(), 30)
            assert client.close_code == 1006


async def test_the_server_sees_the_real_address_and_no_invented_one(front: Proxy) -> None:
    forged = {"X-Forwarded-For": "192.0.2.66"}
    async with front.connect(local_addr=("127.0.0.5", 0), additional_headers=forged) as client:
        await ready(client)
    assert "from 127.0.0.5" in front.server_log.read_text()
    # The server itself: this client is none of the trusted proxies.
    async with connect(
        front.direct_url, local_addr=("127.0.0.9", 0), additional_headers=forged, compression=None
    ) as client:
        await ready(client)
    text = front.server_log.read_text()
    assert "from 127.0.0.9" in text
    assert "192.0.2.66" not in text


async def test_pages_of_the_public_name_may_connect_and_no_others(front: Proxy) -> None:
    async with front.connect(origin=Origin(f"https://{NAME}:{front.port}")) as client:
        await ready(client)
    async with front.connect(origin=Origin("https://evil.example")) as client:
        assert (await read_all(client)).code == 4403


async def test_the_log_of_the_proxy_holds_no_token_but_the_request(front: Proxy) -> None:
    async with connect(
        f"{front.url}?token=very.secret.token", host="127.0.0.1", port=front.port, ssl=front.trust
    ) as client:
        await ready(client)
        assert client.response is not None
        number = client.response.headers["X-Request-ID"]
        await client.send(END)
        await read_all(client)
    for _ in range(600):
        if number in front.log.read_text():
            break
        await asyncio.sleep(0.05)
    text = front.log.read_text()
    assert re.search(rf'GET /v1/stream"? 101 .*{number}', text), text
    assert "secret" not in text
    assert number in front.server_log.read_text()


def test_monitoring_is_not_for_the_world(front: Proxy) -> None:
    assert front.get("/metrics").status_code == 404
    assert front.get("/v1/stats").status_code == 404
    assert front.get("/healthz").json() == {"status": "ok", "state": "ready"}
    assert front.get("/readyz").status_code == 200
    assert front.get("/v1/stream").status_code == 426
