"""The ``parakeet-live`` command, and ``python -m parakeet_live``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. A library that is missing is named, with the remedy, wherever it turns out to be."""
    try:
        from parakeet_live.cli import app

        app(prog_name="parakeet-live")
    except ImportError as error:
        # For instance a server without its WebSocket library, which would answer every client with 404.
        sys.exit(
            f"error: {error}\nThe installation of parakeet-live is not complete, or its parts do not fit together: "
            "pip install --upgrade --force-reinstall parakeet-live"
        )


if __name__ == "__main__":
    main()
