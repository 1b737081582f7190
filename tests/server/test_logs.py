"""The log: for people, for programs, with request ids, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from parakeet_live.access.keys import new_key
from parakeet_live.access.tokens import TokenSigner
from parakeet_live.logs import configure_logging, scrub
from parakeet_live.settings import LogFormat, LogLevel, Settings
from parakeet_live.web.handshake import request_id

log = logging.getLogger("parakeet_live.test")


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    # pytest's own handlers must not be closed by the configuration under test.
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    request_id.set("")


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings())
    log.debug("too much")
    log.info("session %s: opened", "abc")
    request_id.set("r1")
    log.warning("late")
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(" INFO parakeet_live.test: session abc: opened")
    assert second.endswith(" WARNING parakeet_live.test: late [request r1]")


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(log_format=LogFormat.JSON, log_level=LogLevel.DEBUG))
    request_id.set("r1")
    log.info("opened\nat last", extra={"session": "abc"})
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("a fault")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["message"] == "opened\nat last"
    assert (first["level"], first["logger"]) == ("INFO", "parakeet_live.test")
    assert (first["session"], first["request"]) == ("abc", "r1")
    assert first["time"].endswith("Z")
    assert "suffix" not in first
    assert "ValueError: broken" in second["exc_info"]


def test_nothing_secret_gets_through(capsys: pytest.CaptureFixture[str]) -> None:
    key, record = new_key("alice")
    token = TokenSigner(None, "here").issue(record.id, 60)
    for log_format in LogFormat:
        configure_logging(Settings(log_format=log_format))
        log.info("GET /v1/stream?sample_rate=8000&token=%s&x=1", token)
        log.info("Authorization: Bearer %s", key)
        log.info("subprotocols %s", ["parakeet-live", f"bearer.{token}"])
        log.info("?resume=%s", "abc.def")
        try:
            raise ValueError(f"no such key {key}")
        except ValueError:
            log.exception("a fault")
    text = capsys.readouterr().err
    for secret in (key, key.split("_", 2)[2], token, token.split(".")[2], "abc.def"):
        assert secret not in text
    assert record.id in text, "the id alone is no secret and helps to find the key"
    assert "sample_rate=8000" in text
    assert "x=1" in text


def test_scrubbing_leaves_other_text_alone() -> None:
    for text in ("session 6bdccef3c69a5f11: opened", "tokens: 5", "plk_alice", "eyJust a word"):
        assert scrub(text) == text


def test_a_log_file_that_is_rotated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    configure_logging(Settings(log_file=path))
    log.info("one plk_01234567_secret")
    path.rename(tmp_path / "server.log.0")
    log.info("two")
    logging.getLogger().handlers[0].close()
    assert (tmp_path / "server.log.0").read_text().endswith("one plk_01234567_***\n")
    assert path.read_text().endswith(": two\n")
    assert capsys.readouterr().err == ""
