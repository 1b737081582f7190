"""Prediction network and joint of a published layout behind the interface of our greedy search.

The search is our own (``engine.greedy``): ten symbols a frame, an end of utterance resets the prediction network, an
end of a backchannel is no text. These graphs take one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parakeet_live.engine.nemo.graph import Array, Graph, real, shaped
from parakeet_models.layouts.layout import GraphFile, Layout, SeparateDecoder
from parakeet_models.layouts.ports import CombinedPorts, JointPorts, PredictionPorts, ScorePorts
from parakeet_models.layouts.signature import Port
from parakeet_models.mel import Float32


class _OneRowAtATime:
    """The batched interface over calls for one row."""

    look_ahead = 1

    def predict(self, token: NDArray[np.int64], h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        rows = [self._predict(int(token[row]), h[row], c[row]) for row in range(len(token))]
        predicted, new_h, new_c = (np.stack(column) for column in zip(*rows, strict=True))
        return predicted, new_h, new_c

    def best(self, encoded: Float32, predicted: Float32) -> tuple[NDArray[np.int64], Float32]:
        rows = [self._best(encoded[row], predicted[row]) for row in range(len(encoded))]
        tokens, probabilities = zip(*rows, strict=True)
        return np.array(tokens, np.int64), np.array(probabilities, np.float32)

    def _predict(self, token: int, h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        raise NotImplementedError

    def _best(self, encoded: Float32, predicted: Float32) -> tuple[int, float]:
        raise NotImplementedError


class SeparateNetworks(_OneRowAtATime):
    """Two graphs. A prediction is the prediction network's output, ``joint_hidden`` its size."""

    def __init__(
        self, layout: Layout, decoder: SeparateDecoder, open_graph: Callable[[str, Path], Graph]
    ) -> None:
        self._ports: PredictionPorts = decoder.prediction.ports
        self._joint_ports: JointPorts = decoder.joint.ports
        self._prediction = open_graph("prediction", decoder.prediction.path)
        self._joint = open_graph("joint", decoder.joint.path)
        self._score = Scores(self._joint_ports.scores, layout.tokens.blank)
        self.prediction_hidden = _size(self._ports.hidden)
        self.joint_hidden = self.prediction_hidden

    def _predict(self, token: int, h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        ports = self._ports
        outputs = self._prediction.run(_prediction_inputs(ports, token, h, c))
        # The last column, if the graph gives one for its own start of sequence too.
        predicted = _last(outputs[ports.prediction], self.joint_hidden)
        return predicted, real(outputs[ports.new_hidden]).ravel(), real(outputs[ports.new_cell]).ravel()

    def _best(self, encoded: Float32, predicted: Float32) -> tuple[int, float]:
        ports = self._joint_ports
        inputs = {
            ports.encoder.name: shaped(ports.encoder, encoded),
            ports.prediction.name: shaped(ports.prediction, predicted),
        }
        return self._score(self._joint.run(inputs))


class CombinedNetworks(_OneRowAtATime):
    """One graph that takes the last token, its state and a frame.

    The state after a token costs a run with any frame. A prediction is what the graph needs to say it again: the
    token, and the state before it.
    """

    def __init__(
        self, layout: Layout, decoder: GraphFile[CombinedPorts], open_graph: Callable[[str, Path], Graph]
    ) -> None:
        self._ports: CombinedPorts = decoder.ports
        self._graph = open_graph("prediction", decoder.path)
        self._score = Scores(self._ports.scores, layout.tokens.blank)
        self._no_frame = np.zeros(_size(self._ports.encoder), np.float32)
        self.prediction_hidden = _size(self._ports.hidden)
        self.joint_hidden = 1 + 2 * self.prediction_hidden

    def _predict(self, token: int, h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        outputs = self._run(token, h, c, self._no_frame)
        new_h, new_c = (
            real(outputs[name]).ravel() for name in (self._ports.new_hidden, self._ports.new_cell)
        )
        return np.concatenate([[np.float32(token)], h, c]), new_h, new_c

    def _best(self, encoded: Float32, predicted: Float32) -> tuple[int, float]:
        h, c = np.split(predicted[1:], 2)
        return self._score(self._run(int(predicted[0]), h, c, encoded))

    def _run(self, token: int, h: Float32, c: Float32, encoded: Float32) -> Mapping[str, Array]:
        ports = self._ports
        inputs = _prediction_inputs(ports, token, h, c)
        inputs[ports.encoder.name] = shaped(ports.encoder, encoded)
        return self._graph.run(inputs)


class Scores:
    """The best token and its probability, from whatever the joint gives."""

    def __init__(self, ports: ScorePorts, blank: int) -> None:
        self._ports = ports
        self._classes = blank + 1

    def __call__(self, outputs: Mapping[str, Array]) -> tuple[int, float]:
        ports = self._ports
        if ports.logits is None:
            assert ports.token is not None
            assert ports.probability is not None
            token, probability = outputs[ports.token], outputs[ports.probability]
            return int(token.ravel()[-1]), float(probability.ravel()[-1])
        # In float32, ties to the lowest id. Graphs that prepend a start of sequence give its logits first.
        logits = _last(outputs[ports.logits], self._classes)
        best = int(logits.argmax())
        return best, float(1.0 / np.exp(logits - logits[best]).sum())


def _prediction_inputs(
    ports: PredictionPorts | CombinedPorts, token: int, h: Float32, c: Float32
) -> dict[str, Array]:
    inputs: dict[str, Any] = {
        ports.token.name: shaped(ports.token, np.array(token)),
        ports.hidden.name: shaped(ports.hidden, h),
        ports.cell.name: shaped(ports.cell, c),
    }
    if ports.count is not None:
        inputs[ports.count.name] = shaped(ports.count, np.array(1))
    return inputs


def _last(values: Array, size: int) -> Float32:
    """The last vector of ``size`` in an array of one row, whichever axis runs over vectors."""
    values = real(values)
    axis = max(axis for axis in range(values.ndim) if values.shape[axis] == size)
    last: Float32 = np.moveaxis(values, axis, -1).reshape(-1, size)[-1]
    return last


def _size(port: Port) -> int:
    """Numbers in an array of one row: the product of its fixed sizes."""
    size = 1
    for axis in port.shape:
        size *= axis or 1
    return size


def open_networks(
    layout: Layout, open_graph: Callable[[str, Path], Graph]
) -> SeparateNetworks | CombinedNetworks:
    """Load the decoder's graphs; ``open_graph`` is given their parts and paths."""
    if isinstance(layout.decoder, SeparateDecoder):
        return SeparateNetworks(layout, layout.decoder, open_graph)
    return CombinedNetworks(layout, layout.decoder, open_graph)
