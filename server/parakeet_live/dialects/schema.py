"""The published descriptions of the protocol, made of the definitions that the server itself uses::

python -m parakeet_live.dialects.schema > docs/protocol.schema.json
python -m parakeet_live.dialects.schema asyncapi > docs/asyncapi.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from parakeet_live.dialects.asyncapi import asyncapi_document
from parakeet_live.dialects.messages import protocol_schema


def schema_text() -> str:
    """docs/protocol.schema.json."""
    return _text(protocol_schema())


def asyncapi_text() -> str:
    """docs/asyncapi.json."""
    return _text(asyncapi_document())


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(asyncapi_text() if sys.argv[1:] == ["asyncapi"] else schema_text(), end="")
