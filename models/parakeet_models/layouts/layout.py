"""A published export of the network, recognised: its graphs, its cadence, its vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from parakeet_models.bundle import Bundle, ModelInfo, Runtime, TokenIds
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts.ports import CombinedPorts, EncoderPorts, JointPorts, PartPorts, PredictionPorts
from parakeet_models.mel import MelParameters

Family = Literal["soniqo", "fluidinference", "altunenes", "sherpa"]
Ports = TypeVar("Ports")

PRE_ENCODE_FRAMES = 9
"""Mel frames before the new ones that a window repeats (NeMo's ``pre_encode_cache_size``)."""
DROPPED_FRAMES = 2
"""Encoder frames at the start of a window that these graphs always drop (NeMo's ``drop_extra_pre_encoded``), so the
window begins 16 mel frames before the one its first output sits on."""
LARGER_STEPS = (1, 2, 4, 8)
"""Multiples of a layout's own step that are tried where the graph takes windows of any length."""
ATTENTION_CHUNK = 2
"""Encoder frames per attention chunk of the published network; a step must be a multiple of it."""


@dataclass(frozen=True, slots=True)
class GraphFile(Generic[Ports]):
    """A graph on disk and what its inputs and outputs are."""

    path: Path
    ports: Ports


@dataclass(frozen=True, slots=True)
class SeparateDecoder:
    """Prediction network and joint in files of their own."""

    prediction: GraphFile[PredictionPorts]
    joint: GraphFile[JointPorts]


Decoder = SeparateDecoder | GraphFile[CombinedPorts]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a directory of published graphs holds.

    ``hop`` is the number of encoder frames (80 ms each) by which the layout's own runtime advances; whether the graph
    agrees is seen when it runs (``parakeet_live.engine.nemo.selftest``). ``remedy`` says what to use if it does not.
    """

    directory: Path
    family: Family
    title: str
    runtime: Runtime
    encoder: GraphFile[EncoderPorts]
    decoder: Decoder
    pieces: tuple[str, ...]
    tokens: TokenIds
    mel: MelParameters
    hop: int
    remedy: str

    @property
    def step_sizes(self) -> tuple[int, ...]:
        """Encoder frames of the steps it can be asked for: its own, and larger ones if a window may have any length."""
        if self.encoder.ports.signal_frames is not None:
            return (self.hop,)
        return tuple(self.hop * factor for factor in LARGER_STEPS)

    @property
    def window_frames(self) -> int:
        """Mel frames of the encoder's window for its own step, those of ``pre_cache`` included."""
        return self.window_of(self.hop)

    def window_of(self, frames: int) -> int:
        """Mel frames of the window for a step of ``frames`` encoder frames."""
        ports = self.encoder.ports
        if ports.signal_frames is None:
            return PRE_ENCODE_FRAMES + SUBSAMPLING_FACTOR * frames
        return ports.pre_frames + ports.signal_frames

    @property
    def files(self) -> Mapping[str, Path]:
        """The graph files by part."""
        if isinstance(self.decoder, SeparateDecoder):
            parts = {"prediction": self.decoder.prediction.path, "joint": self.decoder.joint.path}
        else:
            parts = {"prediction and joint": self.decoder.path}
        return {"encoder": self.encoder.path, **parts}


@dataclass(frozen=True, slots=True)
class ForeignBundle:
    """A published layout where a bundle is wanted; its manifest exists in memory only."""

    directory: Path
    manifest: ModelInfo
    layout: Layout

    @property
    def bytes(self) -> int:
        """Size of its graphs together; a Core ML model is a directory."""
        files = (file for path in self.layout.files.values() for file in (path, *path.rglob("*")))
        return sum(file.stat().st_size for file in files if file.is_file())


AnyBundle = Bundle | ForeignBundle
"""What a command is given to run."""


@dataclass(frozen=True, slots=True)
class Graphs:
    """The graph files of one kind (ONNX or Core ML) in a directory."""

    directory: Path
    runtime: Runtime
    parts: Mapping[Path, PartPorts]
    metadata: Mapping[Path, Mapping[str, str]]

    def encoder(self) -> GraphFile[EncoderPorts] | None:
        return self._first(EncoderPorts)

    def decoder(self) -> Decoder | None:
        """Separate graphs where both forms are there: they are what the publishers measured."""
        prediction, joint = self._first(PredictionPorts), self._first(JointPorts)
        if prediction and joint:
            return SeparateDecoder(prediction, joint)
        return self._first(CombinedPorts)

    def _first(self, kind: type[Ports]) -> GraphFile[Ports] | None:
        """The graph of this part; of several (say, with a quantised twin) the one with the plainest name."""
        found = [(path, ports) for path, ports in self.parts.items() if isinstance(ports, kind)]
        found.sort(key=lambda item: (len(item[0].name), item[0].name))
        return GraphFile(*found[0]) if found else None
