"""``python -m parakeet_live`` is the ``parakeet-live`` command."""

from parakeet_live.cli import app

if __name__ == "__main__":
    app(prog_name="parakeet-live")
