"""Logs, on standard error or in a file: text for people or JSON for programs, with request ids, without secrets."""

from __future__ import annotations

import logging
import re
import time
from logging.handlers import WatchedFileHandler

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from parakeet_live.access.keys import KEY_PREFIX
from parakeet_live.settings import LogFormat, Settings
from parakeet_live.web.handshake import request_id

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s%(suffix)s"
JSON = "%(asctime)s %(levelname)s %(name)s %(message)s"

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"{KEY_PREFIX}_([0-9a-f]{{8}})_[\w-]+"), rf"{KEY_PREFIX}_\1_***"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*"), "***"),
    (re.compile(r"(?i)\b((?:resume|token)=)[^&\s\"']+"), r"\1***"),
)
"""What looks like a key, a JSON Web Token, or a query parameter with a token, and what is written instead. None is
ever logged on purpose; this is for what other libraries put into messages and tracebacks."""


def configure_logging(settings: Settings) -> None:
    """Everything of this process goes to standard error or the log file, in the wanted format, from this level on.

    Raises:
        OSError: the log file cannot be written.
    """
    logging.Formatter.converter = time.gmtime
    handler = _FileHandler(settings.log_file) if settings.log_file else _StreamHandler()
    handler.addFilter(_add_request_id)
    if settings.log_format is LogFormat.JSON:
        handler.setFormatter(
            JsonFormatter(
                JSON,
                rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
                datefmt="%Y-%m-%dT%H:%M:%SZ",
                reserved_attrs=[*RESERVED_ATTRS, "suffix"],
            )
        )
    else:
        handler.setFormatter(logging.Formatter(TEXT))
    logging.basicConfig(level=settings.log_level.value.upper(), handlers=[handler], force=True)


def scrub(text: str) -> str:
    """The text without keys and tokens."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class _StreamHandler(logging.StreamHandler):  # type: ignore[type-arg]
    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


class _FileHandler(WatchedFileHandler):
    """Opens its file again when that was moved away, as newsyslog and logrotate do."""

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


def _add_request_id(record: logging.LogRecord) -> bool:
    number = request_id.get()
    if number:
        record.request = number
    record.suffix = f" [request {number}]" if number else ""
    return True
