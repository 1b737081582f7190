"""Several runs on the same audio against the same kind of server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from parakeet_live.bench.probe import Probe
from parakeet_live.bench.run import Load, Run, Transcript, measure, transcribe_alone
from parakeet_live.bench.tracks import Track
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.web.process import ServerStartError, server_process


class Campaign:
    """Owns the tracks, what each says alone, and the runs so far.

    Without ``url`` every run gets a fresh server with the bundle ``model`` on ``backend``: memory that one run took
    would hide what the next one needs. ``key`` is an API key for the server at ``url``.
    """

    def __init__(
        self,
        tracks: Sequence[Track],
        load: Load,
        *,
        url: str | None,
        key: str | None = None,
        model: Path | None,
        backend: BackendChoice = BackendChoice.AUTO,
    ) -> None:
        self._tracks = tracks
        self._load = load
        self._url = url
        self._key = key
        self._model = model
        self._backend = backend
        self._alone: list[Transcript] = []
        self.runs: list[Run] = []

    def transcribe_alone(self) -> None:
        """To be called once, before the first run. Raises ReferenceFailedError."""
        with self._server(max_streams=1) as probe:
            self._alone = asyncio.run(transcribe_alone(probe, self._tracks))

    def run(self, streams: int) -> Run:
        """One run with so many streams."""
        with self._server(max_streams=streams) as probe:
            run = asyncio.run(measure(probe, self._tracks, self._alone, streams, self._load))
        self.runs.append(run)
        return run

    @contextmanager
    def _server(self, max_streams: int) -> Iterator[Probe]:
        if self._url:
            yield Probe(self._url, pid=None, key=self._key)
            return
        with tempfile.TemporaryFile("w+") as log:
            try:
                with server_process(
                    self._model, max_streams=max_streams, backend=self._backend, log=log
                ) as server:
                    yield Probe(server.url, server.pid)
            except ServerStartError as error:
                log.seek(0)
                raise ServerStartError(f"{error}:\n{log.read()}") from error
