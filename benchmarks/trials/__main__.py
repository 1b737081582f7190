"""``python -m benchmarks.trials NAME``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def trials() -> None:
    """Trials of a running server; each prints its figures as JSON."""


def _show(figures: dict[str, Any]) -> None:
    print(json.dumps(figures, indent=2))


@app.command()
def tiny_frames(
    streams: int = 20,
    seconds: int = 20,
    frame_ms: Annotated[list[int] | None, typer.Option(help="May be repeated; default 5 and 100.")] = None,
    speed: Annotated[float, typer.Option(help="Times as fast as speech.")] = 8.0,
    rounds: int = 3,
) -> None:
    """Processor time of the same audio in messages of different sizes."""
    from benchmarks.trials.tiny_frames import run

    _show(run(streams, seconds, frame_ms or [5, 100], speed, rounds))


@app.command()
def full_pool(streams: int = 8, seconds: float = 8.0) -> None:
    """Three times as many clients as streams, all at once."""
    from benchmarks.trials.full_pool import run

    _show(run(streams, seconds))


@app.command()
def deaf_clients(clients: int = 20, minutes: float = 10.0) -> None:
    """Clients that send and never read, compared with as many that do."""
    from benchmarks.trials.deaf_clients import run

    _show(run(clients, minutes))


@app.command()
def churn(sessions: int = 2000, at_once: int = 20) -> None:
    """Short sessions with clean and rude ends."""
    from benchmarks.trials.churn import run

    _show(run(sessions, at_once))


@app.command()
def long_session(hours: float = 4.0) -> None:
    """One session of hours, faster than real time."""
    from benchmarks.trials.long_session import run

    _show(run(hours))


@app.command()
def upload(minutes: float = 60.0) -> None:
    """A long recording as fast as it goes."""
    from benchmarks.trials.upload import run

    _show(run(minutes))


@app.command()
def silent_neighbours(streams: int = 8, seconds: int = 10, rounds: int = 2) -> None:
    """Latency of a live stream alone, beside clients that send nothing, and beside clients that send silence."""
    from benchmarks.trials.neighbours import silent_neighbours

    _show(silent_neighbours(streams, seconds, rounds))


@app.command()
def full_house(streams: int = 32, seconds: int = 20) -> None:
    """Delay of the event loop, and of an HTTP request, while every stream is live."""
    from benchmarks.trials.neighbours import full_house

    _show(full_house(streams, seconds))


if __name__ == "__main__":
    app()
