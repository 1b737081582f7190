"""The browser page that the server shows at ``/``: plain ES modules, no build step. See clients/web/README.md."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def directory() -> Path:
    """The folder to serve as static files; ``index.html`` is the page."""
    return Path(str(files("parakeet_page") / "site"))
