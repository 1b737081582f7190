"""The documentation is of one piece: links lead somewhere, and what it names is there."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import typer

from parakeet_live.cli import app
from parakeet_live.session.endpoint_config import PRESETS, Preset
from parakeet_live.settings import Settings

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.splitlines()
PAGES = sorted(ROOT / name for name in TRACKED if name.endswith(".md")) or sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
)
"""Every page of the repository; of a copy without git, those of the top level and of docs/."""


def prose(page: Path) -> str:
    """A page without its blocks of code, in which nothing is a link or a heading."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, to_read = set[Path](), [ROOT / "README.md"]
    while to_read:
        page = to_read.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        named = re.findall(r"\]\(([^)#\s]+)|\b(docs/[\w-]+\.md)", prose(page))
        to_read += [page.parent / link if link else ROOT / name for link, name in named]
    assert set((ROOT / "docs").glob("*.md")) - reached == set()


def test_tests_that_the_field_cases_name_exist() -> None:
    for name in re.findall(
        r"\b(?:server|clients|models|browser)/test_\w+\.py", prose(ROOT / "docs/field-cases.md")
    ):
        assert (ROOT / "tests" / name).exists(), name


def test_the_architecture_lists_every_package() -> None:
    table = prose(ROOT / "docs" / "architecture.md")
    packages = [path.parent.name for path in (ROOT / "server" / "parakeet_live").glob("*/__init__.py")]
    assert [name for name in packages if f"`.{name}`" not in table] == []


def test_the_example_of_ready_has_the_numbers_of_the_defaults() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    section = text.partition("\n### ready\n")[2]
    example = json.loads(re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0])
    settings = Settings.model_validate({})
    for name in ("resume_window", "idle_timeout", "max_session"):
        assert example[f"{name}_ms"] == 1000 * getattr(settings, f"{name}_s"), name
    for name, value in example["limits"].items():
        assert value == getattr(settings, name), name


def numbers_of(preset: str) -> dict[str, Any]:
    config = PRESETS[Preset(preset)]
    return {name: value for name, value in asdict(config).items() if name.endswith("_ms")}


def test_the_examples_of_endpointing_have_the_numbers_of_their_preset() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    examples = [
        example["endpointing"]
        for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
        if isinstance(example := json.loads(block), dict) and isinstance(example.get("endpointing"), dict)
    ]
    assert len(examples) == 2
    changed = {"max_utterance_ms": 20_000}  # the example of `configure` asks for it
    for example, own in zip(examples, ({}, changed), strict=True):
        assert {name: example[name] for name in numbers_of(example["preset"])} == {
            **numbers_of(example["preset"]),
            **own,
        }


def test_the_table_of_presets_has_their_numbers() -> None:
    rows = re.findall(r"^\| `(\w+_ms)` \|(.*)\|", prose(ROOT / "docs" / "endpointing.md"), re.MULTILINE)
    table = {name: [int(cell) for cell in cells.split("|")[:4]] for name, cells in rows}
    order = ("conversation", "telephone_digits", "dictation", "command")
    assert table == {name: [numbers_of(preset)[name] for preset in order] for name in numbers_of(order[0])}


def commands() -> dict[str, set[str]]:
    """Every sub-command with its flags."""
    found = {}

    def walk(command: Any, path: str) -> None:
        for name, child in getattr(command, "commands", {}).items():
            walk(child, f"{path} {name}".strip())
        found[path] = {
            flag
            for parameter in command.params
            for flag in (*parameter.opts, *getattr(parameter, "secondary_opts", ()))
        }

    walk(typer.main.get_command(app), "")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_shows_exist_with_their_flags(page: Path) -> None:
    known = commands()
    text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
    for line in re.findall(r"\bparakeet-live ([a-z]+\b[^\n`|#;&]*)", text):
        words = line.split()
        command = next((name for n in (2, 1) if (name := " ".join(words[:n])) in known), None)
        if command is None:
            assert words[0] not in known, line  # a sentence about parakeet-live is no command
            continue
        flags = {word.partition("=")[0].rstrip(".,)") for word in words if word.startswith("--")}
        assert flags <= known[command] | {"--help"}, f"parakeet-live {line}"
