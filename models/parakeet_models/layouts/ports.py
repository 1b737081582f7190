"""Which part of the network a graph is, and what its inputs and outputs are called: from names and shapes alone.

The published exports of this network agree on what crosses the borders and differ in everything else: names, the order
of the axes, number types, which inputs exist. A graph is known by the inputs it has; each input is then found by the
names the exporters use, or, where an exporter leaves the name to the tracer, by its shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from parakeet_models.layouts.signature import Port, Signature

SIGNAL = ("audio_signal", "processed_signal")
SIGNAL_LENGTH = ("audio_length", "length", "processed_signal_length")
PRE_CACHE = ("pre_cache",)
CHANNEL_CACHE = ("cache_last_channel",)
TIME_CACHE = ("cache_last_time",)
CACHE_LENGTH = ("cache_last_channel_len",)
ENCODED = ("encoded_output", "outputs", "encoded")
NEW_CHANNEL_CACHE = ("new_cache_last_channel", "cache_last_channel_next")
NEW_TIME_CACHE = ("new_cache_last_time", "cache_last_time_next")
NEW_CACHE_LENGTH = (
    "new_cache_last_channel_len",
    "cache_last_channel_next_len",
    "cache_last_channel_len_next",
)

TOKEN = ("token", "targets")
TOKEN_COUNT = ("target_length",)
HIDDEN = ("h", "h_in", "input_states_1", "states.1")
CELL = ("c", "c_in", "input_states_2", "states.2")
PREDICTION = ("decoder_output", "decoder", "outputs")
NEW_HIDDEN = ("h_out", "output_states_1", "states")
NEW_CELL = ("c_out", "output_states_2", "new_states")

ENCODER_FRAME = ("encoder_output", "encoder_outputs", "encoder_step")
PREDICTION_FRAME = ("decoder_output", "decoder_outputs", "decoder_step")
LOGITS = ("logits", "outputs")
BEST_TOKEN = ("token_id",)
BEST_PROBABILITY = ("token_prob",)


@dataclass(frozen=True, slots=True)
class EncoderPorts:
    """A cache-aware encoder. Caches are whole, in and out; ``pre_cache`` are mel frames put before ``signal``."""

    signal: Port
    length: Port
    pre_cache: Port | None
    channel: Port
    time: Port
    valid: Port
    encoded: str
    new_channel: str
    new_time: str
    new_valid: str

    @property
    def bins(self) -> int | None:
        return self.signal.shape[1]

    @property
    def signal_frames(self) -> int | None:
        """Mel frames of ``signal``; None if the graph takes any number."""
        return self.signal.shape[2]

    @property
    def pre_frames(self) -> int:
        """Mel frames of ``pre_cache``, 0 without one."""
        return (self.pre_cache.shape[2] or 0) if self.pre_cache else 0

    @property
    def d_model(self) -> int | None:
        return self.channel.shape[3]

    @property
    def batch_first(self) -> bool:
        """Caches are [batch, layers, …] rather than [layers, batch, …]; the batch is the axis of one or any."""
        first, second = self.channel.shape[:2]
        return first in (1, None) and second not in (1, None)

    @property
    def layers(self) -> int | None:
        """None if an exporter left the axis free, which only happens to [layers, batch, …]."""
        return self.channel.shape[1] if self.batch_first else self.channel.shape[0]


@dataclass(frozen=True, slots=True)
class PredictionPorts:
    """The prediction network alone."""

    token: Port
    count: Port | None
    """How many tokens, where the graph asks for it."""
    hidden: Port
    cell: Port
    prediction: str
    new_hidden: str
    new_cell: str


@dataclass(frozen=True, slots=True)
class ScorePorts:
    """What a joint says of a frame: logits, or the best token and its probability."""

    logits: str | None
    token: str | None
    probability: str | None
    classes: int | None
    """Number of logits, the blank included, where the file tells."""


@dataclass(frozen=True, slots=True)
class JointPorts:
    """The joint alone."""

    encoder: Port
    prediction: Port
    scores: ScorePorts


@dataclass(frozen=True, slots=True)
class CombinedPorts:
    """Prediction network and joint in one graph, which takes the token emitted last."""

    encoder: Port
    token: Port
    count: Port | None
    hidden: Port
    cell: Port
    scores: ScorePorts
    new_hidden: str
    new_cell: str


PartPorts = EncoderPorts | PredictionPorts | JointPorts | CombinedPorts


def recognise_part(signature: Signature) -> PartPorts | None:
    """Which part of the network a graph is; None if none that we know."""
    inputs = signature.inputs
    if _named(inputs, CHANNEL_CACHE):
        return _encoder(signature)
    frame = _named(inputs, ENCODER_FRAME)
    token = _named(inputs, TOKEN)
    if frame and token:
        return _combined(signature, frame, token)
    if token:
        return _prediction(signature, token)
    prediction = _named(inputs, PREDICTION_FRAME)
    if frame and prediction and (scores := _scores(signature.outputs)):
        return JointPorts(frame, prediction, scores)
    return None


def _named(ports: Mapping[str, Port], names: Iterable[str]) -> Port | None:
    return next((ports[name] for name in names if name in ports), None)


def _encoder(signature: Signature) -> EncoderPorts | None:
    inputs = [_named(signature.inputs, names) for names in (SIGNAL, SIGNAL_LENGTH, CHANNEL_CACHE, TIME_CACHE)]
    valid = _named(signature.inputs, CACHE_LENGTH)
    outputs = [
        _named(signature.outputs, names)
        for names in (ENCODED, NEW_CHANNEL_CACHE, NEW_TIME_CACHE, NEW_CACHE_LENGTH)
    ]
    signal, length, channel, time = inputs
    encoded, new_channel, new_time, new_valid = outputs
    if not (signal and length and channel and time and valid):
        return None
    if not (encoded and new_channel and new_time and new_valid):
        return None
    if len(signal.shape) != 3 or len(channel.shape) != 4 or len(time.shape) != 4:
        return None
    return EncoderPorts(
        signal,
        length,
        _named(signature.inputs, PRE_CACHE),
        channel,
        time,
        valid,
        encoded.name,
        new_channel.name,
        new_time.name,
        new_valid.name,
    )


def _prediction(signature: Signature, token: Port) -> PredictionPorts | None:
    states = _states(signature.inputs, HIDDEN, CELL)
    prediction = _named(signature.outputs, PREDICTION)
    if states is None or prediction is None:
        return None
    rest = {name: port for name, port in signature.outputs.items() if name != prediction.name}
    new = _states(rest, NEW_HIDDEN, NEW_CELL)
    if new is None:
        return None
    count = _named(signature.inputs, TOKEN_COUNT)
    return PredictionPorts(token, count, *states, prediction.name, new[0].name, new[1].name)


def _combined(signature: Signature, frame: Port, token: Port) -> CombinedPorts | None:
    inputs = {name: port for name, port in signature.inputs.items() if name != frame.name}
    states = _states(inputs, HIDDEN, CELL)
    new = _states(signature.outputs, NEW_HIDDEN, NEW_CELL)
    scores = _scores(signature.outputs)
    if states is None or new is None or scores is None:
        return None
    count = _named(signature.inputs, TOKEN_COUNT)
    return CombinedPorts(frame, token, count, *states, scores, new[0].name, new[1].name)


def _states(
    ports: Mapping[str, Port], hidden: tuple[str, ...], cell: tuple[str, ...]
) -> tuple[Port, Port] | None:
    """The LSTM's two states: by name, or else the two arrays of their rank in the order of the file."""
    found = _named(ports, hidden), _named(ports, cell)
    if found[0] and found[1]:
        return found[0], found[1]
    arrays = [port for port in ports.values() if port.real and len(port.shape) == 3]
    return (arrays[0], arrays[1]) if len(arrays) == 2 else None


def _scores(outputs: Mapping[str, Port]) -> ScorePorts | None:
    token, probability = _named(outputs, BEST_TOKEN), _named(outputs, BEST_PROBABILITY)
    if token and probability:
        return ScorePorts(None, token.name, probability.name, None)
    logits = _named(outputs, LOGITS)
    if logits is None or not logits.real:
        return None
    return ScorePorts(logits.name, None, None, logits.shape[-1] if logits.shape else None)
