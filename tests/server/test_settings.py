"""Settings: which place wins, what is refused, and that the documentation says what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from parakeet_live.cli import app
from parakeet_live.configuration import (
    ConfigurationError,
    flag_of,
    is_secret,
    load_configuration,
    variable_of,
)
from parakeet_live.settings import ENVIRONMENT_PREFIX, GROUPS, Settings
from parakeet_live.settings_reference import reference_text

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)]:
        monkeypatch.delenv(name)


def config(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["config", *map(str, arguments)])


def effective(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    result = config("--json", *arguments)
    assert result.exit_code == 0, result.output
    values: dict[str, dict[str, Any]] = json.loads(result.stdout)
    return values


# Precedence


def test_flags_win_over_environment_over_file_over_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("port = 1\nmax_streams = 1\nmax_backlog_ms = 5000\n")
    monkeypatch.setenv("PARAKEET_LIVE_PORT", "2")
    monkeypatch.setenv("PARAKEET_LIVE_MAX_STREAMS", "2")
    values = effective("--config", file, "--port", "3")
    assert values["port"] == {"value": 3, "origin": "--port"}
    assert values["max_streams"] == {"value": 2, "origin": "PARAKEET_LIVE_MAX_STREAMS"}
    assert values["max_backlog_ms"] == {"value": 5000, "origin": str(file)}
    assert values["host"] == {"value": "127.0.0.1", "origin": "default"}


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_LIVE_PORT", "")
    assert effective()["port"] == {"value": 8765, "origin": "default"}


def test_settings_made_in_a_program_read_nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_LIVE_PORT", "2")
    assert Settings().port == 8765


def test_a_printed_settings_file_gives_the_same_settings(tmp_path: Path) -> None:
    printed = config("--toml", "--port", "7", "--log-level", "debug")
    file = tmp_path / "settings.toml"
    file.write_text(printed.stdout)
    assert load_configuration(file=file).settings == Settings(port=7, log_level="debug")  # type: ignore[arg-type]


def test_the_table_shows_values_and_origins() -> None:
    text = config("--max-streams", "5").stdout
    assert " ".join(text.split()).count("max_streams 5 --max-streams") == 1
    assert all(name in text for name in Settings.model_fields)


# Refusals


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("max_steams = 2", ["max_steams", "did you mean max_streams?"]),
        ("[limits]\nmax_streams = 2", ["limits"]),
        ("port = 99999", ["port", "less than or equal to 65535", "99999"]),
        ("port = ", ["cannot read the settings file"]),
    ],
)
def test_a_settings_file_is_checked(tmp_path: Path, content: str, words: list[str]) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(file=file)
    for word in [*words, str(file)]:
        assert word in str(caught.value)


def test_a_missing_settings_file_is_an_error(tmp_path: Path) -> None:
    result = config("--config", tmp_path / "none.toml")
    assert result.exit_code == 1
    assert "no such settings file" in result.stderr


def test_a_variable_that_kubernetes_sets_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_LIVE_PORT", "tcp://10.0.0.1:8765")
    with pytest.raises(ConfigurationError, match=r"PARAKEET_LIVE_PORT.*enableServiceLinks"):
        load_configuration()


def test_a_misspelt_variable_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_LIVE_MAX_STEAMS", "2")
    result = config()
    assert result.exit_code == 0
    assert "PARAKEET_LIVE_MAX_STEAMS names no setting" in result.stderr


# Completeness


def test_every_setting_is_described_and_belongs_to_a_group() -> None:
    grouped = [name for group in GROUPS for name in group.model_fields]
    assert sorted(grouped) == sorted(Settings.model_fields)
    assert all(Settings.model_fields[name].description for name in grouped)


def test_every_number_has_bounds() -> None:
    for name, field in Settings.model_fields.items():
        if field.annotation in (int, float, int | None, float | None):
            kinds = {type(bound).__name__ for bound in field.metadata}
            assert kinds >= {"Ge", "Le"}, name


def test_every_setting_but_secrets_has_a_flag_and_secrets_have_a_variable() -> None:
    text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    for name, field in Settings.model_fields.items():
        secret = "Secret" in str(field.annotation)
        assert (flag_of(name) + " " in text) is not secret, name
        assert variable_of(name).startswith(ENVIRONMENT_PREFIX)


def test_help_has_room_for_every_flag_and_means_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = CliRunner().invoke(app, ["serve", "--help"]).stdout
    flags = {flag_of(name) for name in Settings.model_fields if not is_secret(name)}
    assert flags <= set(re.findall(r"--[a-z-]+", text))
    frames = set("│╭╮╰╯─…")
    assert {
        character for character in text if not character.isascii()
    } <= frames  # ":ID:" once became a picture


@pytest.mark.parametrize("flag", ["--port", "--max-streams", "--ping-interval-s"])
def test_a_flag_out_of_range_is_an_error_that_names_the_flag_and_the_bound(flag: str) -> None:
    result = config(flag, "1000000")
    assert result.exit_code == 1
    assert f"(from {flag}): input should be less than or equal to" in result.stderr.replace("\n", " ")


def test_the_reference_is_current() -> None:
    published = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert published == reference_text(), "run: python -m parakeet_live.settings_reference > docs/settings.md"
