"""Keys, tokens, limits and origins: the decisions alone, without sockets."""

from __future__ import annotations

import json
import stat
from datetime import date
from pathlib import Path

import jwt
import pytest
from typer.testing import CliRunner, Result

from parakeet_live.access.gate import AccessDeniedError, Denial, Gate, MonitoringAccess, Presented
from parakeet_live.access.keys import (
    KeyFileError,
    KeyStore,
    new_key,
    parse_entry,
    read_key_file,
    write_key_file,
)
from parakeet_live.access.origins import is_loopback, origin_allowed
from parakeet_live.access.tokens import TokenError, TokenSigner
from parakeet_live.access.usage import KeyLimitError, Usage
from parakeet_live.cli import app
from parakeet_live.settings import Settings

SECRET = "s" * 32

# Keys


def test_a_key_is_found_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    key, record = new_key("alice", max_streams=2)
    other, _ = new_key("bob")
    write_key_file(file, [record])
    store = KeyStore(file)
    assert store.find(key) == record
    for wrong in [
        other,
        key[:-1],
        key + "x",
        key.upper(),
        "",
        "plk",
        "plk_",
        f"plk_{record.id}_",
        "\ud800",
        "ü",
    ]:
        assert store.find(wrong) is None


def test_a_key_file_holds_no_key_and_is_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    key, record = new_key("alice")
    write_key_file(file, [record])
    assert key.split("_", 2)[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_changed_key_file_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    first, record = new_key("alice")
    second, later = new_key("bob")
    write_key_file(file, [record])
    store = KeyStore(file)
    write_key_file(file, [later])
    assert store.find(first) is None
    assert store.find(second) == later


@pytest.mark.parametrize(
    "content", [None, "", "{", '{"version": 2}', '{"version": 1, "keys": [{"id": "x"}]}']
)
def test_a_damaged_key_file_changes_nothing_while_the_server_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | None
) -> None:
    file = tmp_path / "keys.json"
    key, record = new_key("alice")
    write_key_file(file, [record])
    store = KeyStore(file)
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    assert store.find(key) == record
    assert "the keys stay as they were" in caplog.text
    with pytest.raises(KeyFileError, match=str(file)):
        KeyStore(file)


def test_an_entry_for_the_environment() -> None:
    key, record = new_key("alice")
    store = KeyStore(None, [parse_entry(f"alice:{record.id}:{record.sha256}")])
    found = store.find(key)
    assert found is not None
    assert found.name == "alice"
    with pytest.raises(KeyFileError) as caught:
        parse_entry(key)
    assert key not in str(caught.value)


def test_an_empty_key_file_lets_nobody_in(tmp_path: Path) -> None:
    write_key_file(tmp_path / "keys.json", [])
    assert KeyStore(tmp_path / "keys.json").configured
    assert not KeyStore(None).configured


# The command


def keys_command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["keys", *map(str, arguments)])


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    made = keys_command("new", "call centre", "--file", file, "--max-streams", "3")
    key = made.stdout.strip()
    (record,) = read_key_file(file)
    assert KeyStore(file).find(key) == record
    listed = keys_command("list", "--file", file).stdout
    assert record.id in listed
    assert "call centre" in listed
    assert key not in listed
    assert keys_command("revoke", record.id, "--file", file).exit_code == 0
    assert read_key_file(file) == ()
    again = keys_command("revoke", record.id, "--file", file)
    assert again.exit_code == 1
    assert "there is no key" in again.stderr


def test_a_key_without_a_file_is_printed_with_its_entry() -> None:
    made = keys_command("new", "alice")
    key = made.stdout.strip()
    entry = next(word for word in made.stderr.split() if word.startswith("alice:"))
    assert KeyStore(None, [parse_entry(entry)]).find(key) is not None
    assert keys_command("new", "alice", "--max-streams", "1").exit_code == 1
    assert keys_command("new", "a:b").exit_code == 1
    assert keys_command("list", "--file", "/nonexistent").exit_code == 1


# Tokens


def test_a_token_says_what_was_put_in() -> None:
    signer = TokenSigner(SECRET, "here")
    claims = signer.read(signer.issue("12345678", 60, "https://example.org"))
    assert (claims.key_id, claims.origin) == ("12345678", "https://example.org")


def test_tokens_that_are_not_ours_are_refused() -> None:
    signer = TokenSigner(SECRET, "here")
    payload = {"sub": "12345678", "aud": "here", "exp": 2**33}
    forged = [
        TokenSigner("t" * 32, "here").issue("12345678", 60),
        TokenSigner(SECRET, "elsewhere").issue("12345678", 60),
        TokenSigner(None, "here").issue("12345678", 60),
        jwt.encode(payload, None, algorithm="none"),
        jwt.encode({"sub": "12345678", "aud": "here"}, SECRET, "HS256"),
        jwt.encode({**payload, "aud": ""}, SECRET, "HS256"),
        "",
        "a.b.c",
        signer.issue("12345678", 60)[:-3],
    ]
    for token in forged:
        with pytest.raises(TokenError, match="not valid here"):
            signer.read(token)
    with pytest.raises(TokenError, match="expired"):
        signer.read(signer.issue("12345678", -1))


# Limits of a key


def test_a_key_has_so_many_streams() -> None:
    usage = Usage(max_streams=1)
    _, modest = new_key("alice")
    _, generous = new_key("bob", max_streams=2)
    first = usage.open(modest)
    with pytest.raises(KeyLimitError, match="1 streams"):
        usage.open(modest)
    usage.open(generous)
    usage.open(generous)
    first.close()
    first.close()
    usage.open(modest)
    with pytest.raises(KeyLimitError):
        usage.open(modest)


def test_a_key_has_so_many_minutes_a_day() -> None:
    day = date(2026, 1, 1)
    usage = Usage(audio_minutes_per_day=2, today=lambda: day)
    _, key = new_key("alice")
    lease = usage.open(key)
    lease.add_audio(119_999)
    with pytest.raises(KeyLimitError, match="2 minutes"):
        lease.add_audio(1)
    with pytest.raises(KeyLimitError):
        usage.open(key)
    day = date(2026, 1, 2)
    lease.add_audio(60_000)
    usage.open(key)


# Origins


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "example.org", True),
        ("https://example.org", "example.org", True),
        ("http://example.org", "example.org:80", True),
        ("http://localhost:8765", "localhost:8765", True),
        ("http://[::1]:8765", "[::1]:8765", True),
        ("HTTPS://Example.org", "example.ORG", True),
        ("http://localhost:3000", "localhost:8765", False),
        ("https://evil.example", "example.org", False),
        ("https://example.org.evil.example", "example.org", False),
        ("https://example.org@evil.example", "example.org", False),
        ("null", "example.org", False),
        ("file://", "example.org", False),
        ("", "example.org", False),
        ("https://example.org:x", "example.org", False),
    ],
)
def test_the_origin_must_be_the_server_itself(origin: str | None, host: str, allowed: bool) -> None:
    assert origin_allowed(origin, host, ()) is allowed


def test_origins_can_be_allowed() -> None:
    assert origin_allowed("https://example.org", "other", ["https://Example.org/"])
    assert origin_allowed("null", "other", ["null"])
    assert origin_allowed("https://anything.example", "other", ["*"])
    assert not origin_allowed("http://example.org", "other", ["https://example.org"])


def test_loopback_names() -> None:
    assert all(
        map(is_loopback, ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST", "a.localhost"])
    )
    assert not any(
        map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "127.0.0.1.nip.io", ""])
    )


# The gate


KEY, RECORD = new_key("alice")
KEYS = KeyStore(None, [RECORD])
SIGNER = TokenSigner(SECRET, "here")


def shown(**fields: object) -> Presented:
    return Presented(**{"host": "127.0.0.1:8765", "client": "127.0.0.1", **fields})  # type: ignore[arg-type]


def denial(gate: Gate, request: Presented) -> tuple[Denial, str]:
    with pytest.raises(AccessDeniedError) as caught:
        gate.admit_stream(request)
    return caught.value.denial, str(caught.value)


def test_with_keys_every_stream_needs_one() -> None:
    gate = Gate(KEYS, SIGNER)
    token = gate.issue_token(RECORD, 60, None)
    assert gate.admit_stream(shown(credential=KEY)) == RECORD
    assert gate.admit_stream(shown(credential=token)) == RECORD
    assert gate.admit_stream(shown(query_token=token)) == RECORD
    for wrong in [
        {},
        {"credential": KEY[:-1]},
        {"credential": ""},
        {"query_token": ""},
        {"query_token": token + "x"},
    ]:
        assert denial(gate, shown(**wrong))[0] is Denial.UNAUTHORIZED


def test_a_key_in_a_url_is_refused_and_not_repeated() -> None:
    why, message = denial(Gate(KEYS, SIGNER), shown(query_token=KEY))
    assert why is Denial.UNAUTHORIZED
    assert "must not be part of a URL" in message
    assert KEY not in message


def test_a_token_is_for_its_origin_and_ends_with_its_key() -> None:
    gate = Gate(KEYS, SIGNER, allowed_origins=["*"])
    token = gate.issue_token(RECORD, 60, "https://example.org")
    assert gate.admit_stream(shown(query_token=token, origin="https://example.org")) == RECORD
    assert "another origin" in denial(gate, shown(query_token=token, origin="https://evil.example"))[1]
    assert "another origin" in denial(gate, shown(query_token=token))[1]
    _, other = new_key("bob")
    assert (
        "revoked"
        in denial(Gate(KeyStore(None, [other]), SIGNER), shown(query_token=SIGNER.issue(RECORD.id, 60)))[1]
    )


def test_a_token_makes_no_tokens() -> None:
    gate = Gate(KEYS, SIGNER)
    assert gate.admit_key(shown(credential=KEY)) == RECORD
    for request in [shown(credential=SIGNER.issue(RECORD.id, 60)), shown(), shown(query_token=KEY)]:
        with pytest.raises(AccessDeniedError):
            gate.admit_key(request)
    with pytest.raises(AccessDeniedError, match="no keys"):
        Gate(KeyStore(None), SIGNER).admit_key(shown())


def test_without_keys_a_loopback_server_is_called_by_loopback_names_alone() -> None:
    """A page of evil.example whose name was made to point to this machine looks like the server's own."""
    rebound = shown(host="evil.example:8765", origin="http://evil.example:8765")
    gate = Gate(KeyStore(None), SIGNER)
    assert gate.admit_stream(shown(host="localhost:8765", origin="http://localhost:8765")) is None
    assert denial(gate, rebound)[0] is Denial.FORBIDDEN_ORIGIN
    assert Gate(KeyStore(None), SIGNER, allowed_hosts=["Evil.example"]).admit_stream(rebound) is None
    assert Gate(KeyStore(None), SIGNER, loopback_only=False).admit_stream(rebound) is None
    assert Gate(KEYS, SIGNER).admit_stream(shown(host="a.example", credential=KEY)) == RECORD


def test_who_may_monitor() -> None:
    local, remote = shown(), shown(client="10.0.0.1")
    proxied, named = shown(forwarded=True), shown(host="example.org")
    for keys in (KEYS, KeyStore(None)):
        gate = Gate(keys, SIGNER)
        assert gate.may_monitor(local)
        assert not any(map(gate.may_monitor, [remote, proxied, named]))
        assert Gate(keys, SIGNER, monitoring=MonitoringAccess.OPEN).may_monitor(remote)
        assert not Gate(keys, SIGNER, monitoring=MonitoringAccess.KEY).may_monitor(local)
    for monitoring in (MonitoringAccess.LOOPBACK, MonitoringAccess.KEY):
        gate = Gate(KEYS, SIGNER, monitoring=monitoring)
        assert gate.may_monitor(shown(client="10.0.0.1", credential=KEY))
        assert not gate.may_monitor(shown(client="10.0.0.1", credential=SIGNER.issue(RECORD.id, 60)))


# Settings that belong together


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"host": "0.0.0.0"}, "--insecure-no-keys"),
        ({"host": "::"}, "--insecure-no-keys"),
        ({"host": "example.org"}, "--insecure-no-keys"),
        ({"host": "0.0.0.0", "keys_file": "f"}, "--insecure-no-tls"),
        ({"host": "0.0.0.0", "insecure_no_keys": True}, "--insecure-no-tls"),
        ({"tls_key": "f"}, "belong together"),
        ({"token_secret": "short"}, "openssl rand"),
    ],
)
def test_insecure_settings_must_be_asked_for(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**fields)  # type: ignore[arg-type]


def test_secure_settings() -> None:
    assert Settings(host="0.0.0.0", keys_file=Path("f"), tls_cert=Path("c"), tls_key=Path("k")).keys == ()
    assert Settings(host="0.0.0.0", insecure_no_keys=True, insecure_no_tls=True).host == "0.0.0.0"


def test_secrets_are_masked(tmp_path: Path) -> None:
    secret = "do not print this, whatever happens"
    runner = CliRunner()
    for option in ((), ("--json",), ("--toml",)):
        result = runner.invoke(app, ["config", *option], env={"PARAKEET_LIVE_TOKEN_SECRET": secret})
        assert result.exit_code == 0
        assert "token_secret" in result.stdout
        assert secret not in result.output
    values = json.loads(
        runner.invoke(app, ["config", "--json"], env={"PARAKEET_LIVE_TOKEN_SECRET": secret}).stdout
    )
    assert values["token_secret"] == {"value": "**********", "origin": "PARAKEET_LIVE_TOKEN_SECRET"}
    short = runner.invoke(app, ["config"], env={"PARAKEET_LIVE_TOKEN_SECRET": "short secret"})
    assert short.exit_code == 1
    assert "short secret" not in short.output
