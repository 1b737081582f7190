"""The published JSON Schema: ``python -m parakeet_live.dialects.schema > docs/protocol.schema.json``."""

from __future__ import annotations

import json

from parakeet_live.dialects.messages import protocol_schema


def schema_text() -> str:
    """The schema as it is kept in docs/."""
    return json.dumps(protocol_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
