"""Who gets in, at a running server: real processes, real sockets."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import trustme
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from parakeet_client import Done, stream_file
from parakeet_live.access.keys import new_key, write_key_file
from parakeet_models.bundle import Bundle
from support.random_bundle import noise
from support.server_process import running_server
from support.sockets import END, Outcome, http, read_all, session
from support.wav import wav_file

ROOT = Path(__file__).parents[2]
PCM = (noise(1.0, 1) * 32767).astype("<i2").tobytes()
FORWARDED = {"X-Forwarded-For": "203.0.113.7"}
"""As a proxy in front of the server says; without it the test would be a local program."""


@dataclass
class Guarded:
    """A server that needs keys."""

    url: str
    log: Path
    key: str
    limited: str
    """A key with one stream and one minute a day."""
    secrets: list[str] = field(default_factory=list)
    """What must never be in the log."""

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(self._url(path), headers={**FORWARDED, **headers})

    def token(self, **body: object) -> str:
        answer = self.post_token(self.key, **body)
        assert answer.status_code == 200, answer.text
        self.secrets.append(answer.json()["token"])
        return self.secrets[-1]

    def post_token(self, key: str, **body: object) -> httpx.Response:
        return httpx.post(self._url("/v1/tokens"), json=body, headers={"Authorization": f"Bearer {key}"})

    def _url(self, path: str) -> str:
        return str(httpx.URL(self.url).copy_with(scheme="http", path=path))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, random_bundle: Bundle) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    key, record = new_key("alice")
    limited, limited_record = new_key("bob", max_streams=1, audio_minutes_per_day=1)
    write_key_file(directory / "keys.json", [record, limited_record])
    log = directory / "log"
    options = ["--model", str(random_bundle.directory), "--keys-file", str(directory / "keys.json")]
    with running_server(log, *options, "--log-level", "debug") as url:
        found = Guarded(url, log, key, limited, [key, limited, *(k.split("_", 2)[2] for k in (key, limited))])
        yield found
        text = log.read_text()
        assert not [secret for secret in found.secrets if secret in text]


async def talk(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    subprotocols: list[str] | None = None,
    origin: str | None = None,
    sent: tuple[bytes | str, ...] = (PCM, END),
) -> tuple[Outcome, str | None]:
    """A session; returns what came, and the subprotocol that the server chose."""
    async with connect(
        url,
        additional_headers=headers,
        subprotocols=[Subprotocol(name) for name in subprotocols] if subprotocols else None,
        origin=Origin(origin) if origin is not None else None,
        compression=None,
    ) as socket:
        reader = asyncio.create_task(read_all(socket))
        with suppress(ConnectionClosed):  # refused while sending: the outcome says why
            for message in sent:
                await socket.send(message)
        return await reader, socket.subprotocol


def refused(outcome: Outcome) -> tuple[str, int | None, str | None]:
    assert [message["type"] for message in outcome.messages] == ["error"]
    assert outcome.messages[0]["fatal"] is True
    return outcome.messages[0]["code"], outcome.code, outcome.reason


UNAUTHORIZED = ("unauthorized", 4401, "unauthorized")
FORBIDDEN = ("forbidden_origin", 4403, "forbidden_origin")


async def test_a_key_opens_a_stream(guarded: Guarded) -> None:
    outcome, subprotocol = await talk(guarded.url, headers={"Authorization": f"Bearer {guarded.key}"})
    assert outcome.code == 1000
    assert outcome.of("final")
    assert subprotocol is None


async def test_a_browser_shows_a_token_as_a_subprotocol(guarded: Guarded) -> None:
    for credential in (guarded.key, guarded.token()):
        outcome, subprotocol = await talk(guarded.url, subprotocols=["parakeet-live", f"bearer.{credential}"])
        assert (outcome.code, subprotocol) == (1000, "parakeet-live")


async def test_a_token_in_the_query_opens_a_stream(guarded: Guarded) -> None:
    token = guarded.token(ttl_s=30)
    for query in (f"?token={token}", f"?sample_rate=8000&token={token}", f"?token={token}&channels=1"):
        outcome, _ = await talk(guarded.url + query)
        assert outcome.code == 1000
    outcome, _ = await talk(f"{guarded.url}?token={token}&speed=2")
    assert outcome.messages[0]["code"] == "bad_parameter"


async def test_every_wrong_credential_is_refused_readably(guarded: Guarded) -> None:
    wrong = guarded.key[:-4] + "AAAA"
    stale = guarded.token(ttl_s=1)
    await asyncio.sleep(1.5)
    refusals = [
        await talk(guarded.url, sent=()),
        await talk(guarded.url, headers={"Authorization": f"Bearer {wrong}"}, sent=()),
        await talk(guarded.url, headers={"Authorization": f"Basic {guarded.key}"}, sent=()),
        await talk(guarded.url, headers={"Authorization": "Bearer "}, sent=()),
        await talk(guarded.url, subprotocols=["parakeet-live", f"bearer.{wrong}"], sent=()),
        await talk(f"{guarded.url}?token={guarded.key}", sent=()),
        await talk(f"{guarded.url}?token=", sent=()),
        await talk(f"{guarded.url}?token={stale}", sent=()),
        await talk(f"{guarded.url}?token=x&token=y", sent=()),
    ]
    assert [refused(outcome) for outcome, _ in refusals] == [UNAUTHORIZED] * len(refusals)


async def test_no_plain_path_shows_anything_without_a_key(guarded: Guarded) -> None:
    with_key = {"Authorization": f"Bearer {guarded.key}"}
    for path in ("/v1/stats", "/metrics"):
        refusal = guarded.get(path)
        assert refusal.status_code == 401
        assert refusal.headers["www-authenticate"] == "Bearer"
        assert guarded.get(path, **with_key).status_code == 200
    assert guarded.get("/healthz").json() == {"status": "ok", "state": "ready"}
    assert guarded.get("/healthz", **with_key).json()["model"] == "random"
    assert http(guarded.url, "/healthz").json()["model"] == "random"
    assert guarded.get("/readyz").json() == {"status": "ready"}
    for path in ("/docs", "/openapi.json", "/redoc", "/v1"):
        assert guarded.get(path).status_code == 404


async def test_every_route_is_known_to_this_test(random_bundle: Bundle) -> None:
    """A new route must be looked at: does it show audio, text or statistics without a key?"""
    from parakeet_live.engine.recognizer import Recognizer
    from parakeet_live.settings import Settings
    from parakeet_live.web.app import build_app

    app = build_app(lambda: Recognizer.load(random_bundle, max_streams=1), Settings())
    paths = {getattr(route, "path", "") for route in app.routes} | {
        route.path
        for router in app.routes
        for route in getattr(getattr(router, "original_router", None), "routes", ())
    }
    assert paths - {""} == {
        "/healthz",
        "/metrics",
        "/readyz",
        "/v1/stats",
        "/v1/stream",
        "/v1/stream/",
        "/v1/tokens",
        "/{path:path}",
    }


def test_tokens_are_for_holders_of_a_key(guarded: Guarded) -> None:
    assert guarded.post_token(guarded.key).json()["expires_in"] == 60
    for key in ("x", "plk_00000000_x", guarded.token()):
        assert guarded.post_token(key).status_code == 401
    assert guarded.post_token(guarded.key, ttl_s=601).status_code == 422
    assert guarded.post_token(guarded.key, ttl_s=0).status_code == 422
    assert guarded.post_token(guarded.key, time=1).status_code == 422


async def test_a_token_can_be_bound_to_an_origin(guarded: Guarded) -> None:
    own = guarded.url.replace("ws://", "http://").removesuffix("/v1/stream")
    token = guarded.token(origin=own)
    outcome, _ = await talk(f"{guarded.url}?token={token}", origin=own)
    assert outcome.code == 1000
    outcome, _ = await talk(f"{guarded.url}?token={token}", sent=())
    assert refused(outcome) == UNAUTHORIZED


async def test_the_limits_of_a_key(guarded: Guarded) -> None:
    headers = {"Authorization": f"Bearer {guarded.limited}"}
    async with connect(guarded.url, additional_headers=headers) as first:
        await first.recv()
        outcome, _ = await talk(guarded.url, headers=headers, sent=())
        assert refused(outcome) == ("key_limit", 4429, "key_limit")
        assert "1 streams" in outcome.messages[0]["message"]
    for _ in range(600):
        outcome, _ = await talk(guarded.url, headers=headers)
        if outcome.code == 1000:
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError("the stream of a client that has gone still counts")


async def test_a_key_has_so_many_minutes_of_audio(random_bundle: Bundle, tmp_path: Path) -> None:
    key, record = new_key("alice", audio_minutes_per_day=1)
    write_key_file(tmp_path / "keys.json", [record])
    options = ["--model", str(random_bundle.directory), "--keys-file", str(tmp_path / "keys.json")]
    with running_server(tmp_path / "log", *options) as url:
        headers = {"Authorization": f"Bearer {key}"}
        # 61 s of silence, mu-law at 8 kHz.
        outcome, _ = await talk(
            f"{url}?encoding=mulaw&sample_rate=8000", headers=headers, sent=(b"\xff" * 61 * 8000, END)
        )
        assert (outcome.messages[-1]["code"], outcome.code) == ("key_limit", 4429)
        assert "1 minutes of audio" in outcome.messages[-1]["message"]
        assert refused((await talk(url, headers=headers, sent=()))[0]) == ("key_limit", 4429, "key_limit")


async def test_our_clients_show_a_key(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "speech.wav"
    path.write_bytes(wav_file(PCM))
    script = [sys.executable, str(ROOT / "clients" / "stream.py"), str(path), "--url", guarded.url]
    listen = [sys.executable, "-m", "parakeet_live", "listen", "-", "--url", guarded.url]
    for code in (1, 0):
        for command in (script, listen):
            result = await asyncio.to_thread(
                subprocess.run, command, input=PCM, capture_output=True, check=False, timeout=120
            )
            assert result.returncode == code, result.stderr
        monkeypatch.setenv("PARAKEET_KEY", guarded.key)
    events = [event async for event in stream_file(path, guarded.url, pace="fast", key=guarded.key)]
    assert isinstance(events[-1], Done)


async def test_a_session_is_resumed_by_its_key_alone(guarded: Guarded) -> None:
    owner = {"Authorization": f"Bearer {guarded.key}"}
    async with connect(guarded.url, additional_headers=owner) as socket:
        ready = json.loads(await socket.recv())
        await socket.send(PCM)
        token = ready["resume_token"]
        guarded.secrets.append(token)
        resume = f"{guarded.url}?resume={token}&seen=0"
        assert refused((await talk(resume, sent=()))[0]) == UNAUTHORIZED
        other = {"Authorization": f"Bearer {guarded.limited}"}
        assert refused((await talk(resume, headers=other, sent=()))[0])[0] == "resume_failed"
        outcome, _ = await talk(resume, headers=owner, sent=(END,))
        assert (outcome.code, outcome.messages[0]["resumed"]) == (1000, True)


async def test_pages_of_other_origins_are_refused(babble_url: str) -> None:
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        outcome, _ = await talk(babble_url, origin=origin, sent=())
        assert refused(outcome) == FORBIDDEN
        assert "--allowed-origins" in outcome.messages[0]["message"]
    own = babble_url.replace("ws://", "http://").removesuffix("/v1/stream")
    outcome, _ = await talk(babble_url, origin=own)
    assert outcome.code == 1000


async def test_allowed_origins_and_hosts(random_bundle: Bundle, tmp_path: Path) -> None:
    options = ["--model", str(random_bundle.directory), "--allowed-origins", "https://a.example"]
    options += ["--allowed-origins", "null", "--allowed-hosts", "speech.example"]
    with running_server(tmp_path / "log", *options) as url:
        for origin in ("https://a.example", "null"):
            assert (await talk(url, origin=origin))[0].code == 1000
        assert refused((await talk(url, origin="https://b.example", sent=()))[0]) == FORBIDDEN
        port = httpx.URL(url).port
        for name, code in (("speech.example", 1000), ("evil.example", 4403)):
            async with connect(f"ws://{name}/v1/stream", host="127.0.0.1", port=port) as socket:
                with suppress(ConnectionClosed):
                    await socket.send(END)
                assert (await read_all(socket)).code == code


async def test_a_request_id_goes_through(babble_url: str) -> None:
    async with connect(babble_url, additional_headers={"X-Request-ID": "abc-123"}) as socket:
        assert socket.response is not None
        assert socket.response.headers["X-Request-ID"] == "abc-123"
    strange = {"X-Request-ID": "a b"}
    answer = await asyncio.to_thread(httpx.get, babble_url.replace("ws:", "http:"), headers=strange)
    assert answer.status_code == 426
    assert answer.headers["X-Request-ID"] not in ("", "a b")


async def test_tls(random_bundle: Bundle, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    options = ["--model", str(random_bundle.directory)]
    options += ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with running_server(tmp_path / "log", *options) as url:
        assert url.startswith("wss://")
        async with connect(url, ssl=trust, compression=None) as socket:
            await socket.send(PCM)
            await socket.send(END)
            assert (await read_all(socket)).code == 1000


async def test_without_keys_no_credential_is_looked_at(babble_url: str) -> None:
    outcome = await session(f"{babble_url}?token=anything", [PCM, END])
    assert outcome.code == 1000
