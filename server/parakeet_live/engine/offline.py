"""The synchronous engine for one stream: files on the command line, evaluation, tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from parakeet_live.engine.backends import BackendChoice, open_backend
from parakeet_live.session.endpoint_config import DEFAULT, EndpointingConfig
from parakeet_live.session.events import Event
from parakeet_live.session.session import Session
from parakeet_live.session.vocabulary import Vocabulary
from parakeet_live.session.voice import SileroModel
from parakeet_models.layouts import AnyBundle
from parakeet_models.mel import Float32

log = logging.getLogger(__name__)


class Transcriber:
    """A loaded network for one stream after the other. Not thread-safe."""

    def __init__(
        self,
        bundle: AnyBundle,
        step_frames: int | None = None,
        *,
        backend: BackendChoice = BackendChoice.AUTO,
        report: Callable[[str], None] = log.info,
    ) -> None:
        """``step_frames``: most encoder frames per step, one of the model's step sizes (default: the live step).
        Larger steps are faster and give the same text. ``report`` is told what takes long.
        """
        self._manifest = bundle.manifest
        sizes = bundle.manifest.step_sizes
        if step_frames is not None and step_frames not in sizes:
            raise ValueError(f"steps of {step_frames} encoder frames; the model allows {sizes}")
        self._sizes = [size for size in sizes if size <= (step_frames or sizes[0])]
        self._vocabulary = Vocabulary.load(bundle)
        self._backend = open_backend(bundle, 1, backend, report=report)
        self._voice = SileroModel()

    def stream(self, blocks: Iterable[Float32], endpointing: EndpointingConfig = DEFAULT) -> Iterator[Event]:
        """Events of one stream of blocks, float32[n] mono at the model's rate, n arbitrary; Done comes last."""
        session = Session(self._manifest, self._vocabulary, endpointing, self._voice)
        slot = self._backend.open()
        try:
            for block in blocks:
                session.push(block)
                yield from self._run(session, slot)
            yield from session.end()
            yield from self._run(session, slot)
        finally:
            self._backend.close(slot)

    def _run(self, session: Session, slot: int) -> Iterator[Event]:
        while ready := session.ready_frames:
            step = session.next_step(slot, max(size for size in self._sizes if size <= ready))
            yield from session.apply(self._backend.step([step])[0])
