"""The protocol as an AsyncAPI 3 document: what tools for code, mocks and documentation read.

It adds to the JSON Schema who sends which message, the query of the URL and the close codes; the messages themselves
stay in docs/protocol.schema.json, which it refers to.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from parakeet_live.audio.formats import MAX_CHANNELS, MAX_RATE, MIN_RATE, Encoding
from parakeet_live.dialects.messages import PROTOCOL_VERSION, ClientMessage, CloseCode, ServerMessage
from parakeet_live.dialects.options import StreamOptions

SCHEMA_FILE = "./protocol.schema.json"
LICENCE = {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
DESCRIPTION = """\
Open a WebSocket, send audio as binary messages, receive JSON text messages. protocol.md explains it; this
file is made of the same definitions as the server itself."""
SUBPROTOCOL = "parakeet-live"
NEVER_SENT = (CloseCode.ABNORMAL, CloseCode.BAD_GATEWAY)
"""What clients may see although the server never sends it: connections cut or refused on the way."""


def asyncapi_document() -> dict[str, Any]:
    """The document, as plain data."""
    sent, received = _members(ServerMessage), _members(ClientMessage)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "parakeet-live native protocol",
            "version": f"{PROTOCOL_VERSION}.0.0",
            "description": DESCRIPTION,
            "license": LICENCE,
        },
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:8765",
                "protocol": "ws",
                "description": "A server on this machine, as `parakeet-live serve` starts it.",
                "security": [{"$ref": "#/components/securitySchemes/key"}],
            }
        },
        "channels": {
            "stream": {
                "address": "/v1/stream",
                "description": "One session.",
                "messages": {
                    "Audio": {"$ref": "#/components/messages/Audio"},
                    **{name: {"$ref": f"#/components/messages/{name}"} for name in [*received, *sent]},
                },
                "bindings": {"ws": {"method": "GET", "query": _query(), "bindingVersion": "0.1.0"}},
            }
        },
        "operations": {
            "receive": _operation("receive", ["Audio", *received], "What a client sends."),
            "send": _operation("send", list(sent), "What the server answers."),
        },
        "components": {
            "messages": {
                "Audio": {
                    "title": "Audio",
                    "summary": "Raw samples as the query states them, cut anywhere, or WAV files.",
                    "contentType": "application/octet-stream",
                    "payload": {"type": "string", "format": "binary"},
                },
                **{name: _message(name, text) for name, text in {**received, **sent}.items()},
            },
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key or a token, where the server needs one. Browsers offer the subprotocols "
                    f"`{SUBPROTOCOL}` and `bearer.TOKEN`, or send the query parameter `token`.",
                }
            },
        },
        "x-close-codes": {
            str(code): name.lower()
            for name, code in sorted(vars(CloseCode).items(), key=lambda item: str(item[1]))
            if name.isupper() and code not in NEVER_SENT
        },
    }


def _members(union: Any) -> dict[str, str]:
    """The messages of a union, by name, with the first line of what they are."""
    found: dict[str, str] = {}
    for part in get_args(union):
        if isinstance(part, type) and issubclass(part, BaseModel):
            found[part.__name__] = (part.__doc__ or "").partition("\n")[0]
        else:
            found |= _members(part)
    return found


def _operation(action: str, messages: list[str], summary: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": "#/channels/stream"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/stream/messages/{name}"} for name in messages],
    }


def _message(name: str, summary: str) -> dict[str, Any]:
    return {
        "title": name,
        "summary": summary,
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"$ref": f"{SCHEMA_FILE}#/$defs/{name}"},
        },
    }


def _query() -> dict[str, Any]:
    """The query parameters of the URL, as the properties of an object."""
    options: dict[str, Any] = TypeAdapter(StreamOptions).json_schema()
    return {
        "type": "object",
        "properties": {
            "encoding": {"type": "string", "enum": [str(name) for name in Encoding]},
            "sample_rate": {"type": "integer", "minimum": MIN_RATE, "maximum": MAX_RATE},
            "channels": {"type": "integer", "minimum": 1, "maximum": MAX_CHANNELS},
            **{name: _stated(field, options) for name, field in options["properties"].items()},
            "resume": {
                "type": "string",
                "description": "The resume_token of a session to go on with; needs seen.",
            },
            "seen": {
                "type": "integer",
                "minimum": 0,
                "description": "The seq of the last message received of it.",
            },
            "token": {"type": "string", "description": "A browser token, see POST /v1/tokens."},
        },
        "additionalProperties": False,
    }


def _stated(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A field that may be left out, without the null that stands for that."""
    (kind,) = (choice for choice in field["anyOf"] if choice != {"type": "null"})
    if "$ref" in kind:
        kind = schema["$defs"][kind["$ref"].rpartition("/")[2]]
        kind = {name: value for name, value in kind.items() if name in ("type", "enum")}
    return {**kind, **{name: field[name] for name in ("description", "examples") if name in field}}
