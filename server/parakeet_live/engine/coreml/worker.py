"""``python -m parakeet_live.engine.coreml.worker FD``: loads a model and steps it for whoever holds the other end of
the socket FD. It ends with that socket, whatever becomes of the other process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from parakeet_live.engine.backend import Emission, EngineError, StepInput
from parakeet_live.engine.coreml.channel import Channel, ClosedError
from parakeet_live.engine.coreml.messages import Kind, pack_emissions, unpack_step
from parakeet_live.engine.coreml.network import CoremlNetwork
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_live.engine.nemo.coreml import PublishedNetwork
from parakeet_live.engine.nemo.selftest import CadenceError
from parakeet_models.bundle import Bundle, BundleError, Manifest
from parakeet_models.coreml_runtime import CoremlUnavailableError, find_runtime
from parakeet_models.layouts import describe


class Job(BaseModel):
    """What a worker is to load."""

    model_config = ConfigDict(frozen=True)

    directory: Path
    manifest: Manifest | None
    """None: the directory holds a published layout, to be recognised again."""
    slots: int
    options: CoremlOptions


def main() -> None:
    # Ctrl-C and a supervisor's SIGTERM reach every process of the group; the streams here must be able to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # What a framework prints must not become a result on the command's standard output.
    os.dup2(2, 1)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    try:
        _, body = channel.receive()
        try:
            network = _load(Job.model_validate_json(body), channel)
        except (BundleError, CadenceError, CoremlUnavailableError) as error:
            return channel.send(Kind.UNAVAILABLE, str(error).encode())
        except EngineError as error:
            return channel.send(Kind.FAILED, str(error).encode())
        except Exception as error:
            return channel.send(Kind.FAILED, f"{type(error).__name__}: {error}".encode())
        channel.send(Kind.READY, network.summary.encode())
        while True:
            _serve(network, channel)
    except ClosedError:
        pass


class Network(Protocol):
    """A loaded model with the state of its streams; one thread."""

    @property
    def summary(self) -> str:
        """How fast it is, for people."""
        ...

    def step(self, step: StepInput, fresh: bool) -> list[Emission]:
        """One step of one stream; ``fresh`` if it is the first of another stream on the slot."""
        ...


def _load(job: Job, channel: Channel) -> Network:
    def report(line: str) -> None:
        channel.send(Kind.PROGRESS, line.encode())

    report("starting the runtime")
    if job.manifest is None:
        return PublishedNetwork(
            describe(job.directory, "coreml"), job.slots, job.options, find_runtime(), report
        )
    bundle = Bundle(job.directory, job.manifest)
    return CoremlNetwork(bundle, job.slots, job.options, find_runtime(), report)


def _serve(network: Network, channel: Channel) -> None:
    _, body = channel.receive()
    try:
        emissions = network.step(*unpack_step(body))
    except Exception as error:
        channel.send(Kind.FAILED, f"{type(error).__name__}: {error}".encode())
    else:
        channel.send(Kind.EMISSIONS, pack_emissions(emissions))


if __name__ == "__main__":
    main()
    # Nothing is left to tidy up, and frameworks that are taken down in the wrong order crash.
    os._exit(0)
