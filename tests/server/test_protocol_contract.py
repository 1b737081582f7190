"""The protocol as a contract: AsyncAPI file, close codes, and no change that breaks a client of the last release."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from parakeet_live.dialects.asyncapi import NEVER_SENT, asyncapi_document
from parakeet_live.dialects.messages import CloseCode, ErrorCode, protocol_schema
from parakeet_live.dialects.schema import asyncapi_text
from support.random_bundle import noise
from support.sockets import END, session

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PCM = (noise(2.0, 1) * 32767).astype("<i2").tobytes()
DOCUMENT = json.loads((DOCS / "asyncapi.json").read_text(encoding="utf-8"))
REGISTRY: Registry[Any] = Registry().with_resource(
    "protocol.schema.json",
    Resource.from_contents(json.loads((DOCS / "protocol.schema.json").read_text(encoding="utf-8"))),
)
RELEASED = sorted((ROOT / "tests" / "golden").glob("protocol-*.schema.json"))
"""The schema of every release."""

# AsyncAPI


def test_the_published_file_is_current() -> None:
    published = (DOCS / "asyncapi.json").read_text(encoding="utf-8")
    assert published == asyncapi_text(), (
        "run: python -m parakeet_live.dialects.schema asyncapi > docs/asyncapi.json"
    )


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        file, _, pointer = reference.partition("#/")
        found = DOCUMENT if not file else json.loads((DOCS / file).read_text(encoding="utf-8"))
        for step in pointer.split("/"):
            found = found[step]


def messages_of(operation: str) -> dict[str, Any]:
    """The payload schemas of the messages of an operation, by the ``type`` of the message."""
    found = {}
    for reference in DOCUMENT["operations"][operation]["messages"]:
        message = DOCUMENT["components"]["messages"][reference["$ref"].rpartition("/")[2]]
        if message["contentType" if "contentType" in message else "title"] == "application/octet-stream":
            continue
        schema = message["payload"]["schema"]
        name = schema["$ref"].rpartition("/")[2]
        kind = protocol_schema()["$defs"][name]["properties"]["type"]["const"]
        found[kind] = {"$ref": schema["$ref"].removeprefix("./")}
    return found


async def test_the_running_server_sends_what_the_file_says(babble_url: str) -> None:
    schemas = messages_of("send")
    outcome = await session(babble_url, [PCM, '{"type":"finalize"}', PCM, "?", END])
    assert {"ready", "partial", "final", "error", "done"} <= {message["type"] for message in outcome.messages}
    for message in outcome.messages:
        jsonschema.Draft202012Validator(schemas[message["type"]], registry=REGISTRY).validate(message)
    assert str(outcome.code) in DOCUMENT["x-close-codes"]


async def test_the_running_server_takes_what_the_file_says(babble_url: str) -> None:
    kinds = [kind for kind in messages_of("receive") if kind != "end"]
    assert {"finalize", "keepalive"} <= set(kinds)
    outcome = await session(babble_url, [*(json.dumps({"type": kind}) for kind in kinds), END])
    assert outcome.of("error") == []
    assert outcome.code == 1000


async def test_the_running_server_knows_exactly_the_query_of_the_file(babble_url: str) -> None:
    properties = DOCUMENT["channels"]["stream"]["bindings"]["ws"]["query"]["properties"]
    outcome = await session(f"{babble_url}?nonsense=1", [])
    possible = set(re.findall(r"\w+", outcome.messages[0]["message"].partition("possible are ")[2])) - {"and"}
    # What belongs to access and to earlier sessions is taken out before the rest is judged.
    assert set(properties) == possible | {"token", "resume", "seen"}
    outcome = await session(f"{babble_url}?resume=x&seen=0", [])
    assert outcome.messages[0]["code"] == "resume_failed"
    for name in possible | {"token"}:
        schema = properties[name]
        kind = schema.get("type", "string")
        value = schema["enum"][0] if "enum" in schema else str(schema.get("minimum", 1))
        value = "true" if kind == "boolean" else schema.get("examples", [value])[0]
        outcome = await session(f"{babble_url}?{name}={value}", [END])
        assert outcome.code == 1000, (name, outcome.messages)


# Codes


def table_codes(heading: str) -> set[str]:
    """First column of the table below a heading of protocol.md."""
    section = (DOCS / "protocol.md").read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    section = re.split(r"\n##+ ", section)[0]
    return {
        row[0].strip(" `") for row in re.findall(r"^\|([^|]+)\|", section, re.MULTILINE) for row in [(row,)]
    }


def test_every_close_code_is_documented() -> None:
    codes = {str(code) for name, code in vars(CloseCode).items() if name.isupper() and code not in NEVER_SENT}
    documented = {code for code in table_codes("## Close codes") if code.isdecimal()}
    assert codes <= documented
    assert documented - codes <= {"1002", "1009"}, "which the WebSocket library sends"
    assert set(DOCUMENT["x-close-codes"]) == codes


def test_every_error_code_is_documented() -> None:
    documented = table_codes("### error")
    assert {str(code) for code in ErrorCode} <= documented


# Compatible changes


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What a client of ``old`` could stumble over in ``new``, both schemas of all messages."""
    problems = []
    for name, before in old["$defs"].items():
        after = new["$defs"].get(name)
        if after is None:
            problems.append(f"{name} is gone")
            continue
        problems += _compare(name, before, after)
    return problems


def _compare(place: str, before: Any, after: Any) -> list[str]:
    problems = []
    for key in ("type", "const", "$ref", "items", "format"):
        if before.get(key) != after.get(key):
            problems.append(f"{place}: {key} was {before.get(key)!r}, is {after.get(key)!r}")
    for key in ("oneOf", "anyOf"):
        for choice in before.get(key, ()):
            if choice not in after.get(key, ()):
                problems.append(f"{place}: {choice} is no longer possible")
    for value in before.get("enum", ()):
        if value not in after.get("enum", ()):
            problems.append(f"{place}: value {value!r} is gone")
    for field, schema in before.get("properties", {}).items():
        if field not in after.get("properties", {}):
            problems.append(f"{place}.{field} is gone")
        else:
            problems += _compare(f"{place}.{field}", schema, after["properties"][field])
    required, wanted = set(before.get("required", ())), set(after.get("required", ()))
    if place in CLIENT_MESSAGES:
        problems += [f"{place}.{field} must now be sent" for field in wanted - required]
    else:
        problems += [f"{place}.{field} may now be missing" for field in required - wanted]
    return problems


CLIENT_MESSAGES = {
    reference["$ref"].rpartition("/")[2] for reference in protocol_schema()["$defs"]["ClientMessage"]["oneOf"]
}


def test_there_is_a_released_schema() -> None:
    assert RELEASED


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.name)
def test_clients_of_earlier_releases_understand_this_server(path: Path) -> None:
    """Fields and messages may be added, nothing may go or change its type. Released schemas are never edited."""
    assert breaks(json.loads(path.read_text(encoding="utf-8")), protocol_schema()) == []


def test_changes_that_break_are_found() -> None:
    def broken(change: Any) -> list[str]:
        schema = copy.deepcopy(protocol_schema())
        change(schema["$defs"])
        return breaks(protocol_schema(), schema)

    assert broken(lambda defs: None) == []
    assert broken(lambda defs: defs["Final"]["properties"].update(new={"type": "string"})) == []
    assert broken(lambda defs: defs["ErrorCode"]["enum"].append("new")) == []
    assert broken(lambda defs: defs["Final"]["properties"].pop("text")) == ["Final.text is gone"]
    assert broken(lambda defs: defs["Final"]["properties"]["text"].update(type="integer"))
    assert broken(lambda defs: defs["Final"]["required"].remove("text")) == ["Final.text may now be missing"]
    assert broken(lambda defs: defs["Finalize"].update(required=["type", "id"])) == [
        "Finalize.id must now be sent"
    ]
    assert broken(lambda defs: defs["ErrorCode"]["enum"].pop())
    assert broken(lambda defs: defs.pop("Done"))
    assert broken(lambda defs: defs["ServerMessage"]["oneOf"].pop())


def test_the_document_is_made_of_the_messages() -> None:
    names = set(asyncapi_document()["channels"]["stream"]["messages"]) - {"Audio"}
    schema = protocol_schema()["$defs"]
    roots = [*schema["ServerMessage"]["oneOf"], *schema["ClientMessage"]["oneOf"]]
    assert names == {reference["$ref"].rpartition("/")[2] for reference in roots}
