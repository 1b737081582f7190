"""Batched greedy RNN-T decoding over slots.

The prediction network runs only for rows that emitted, because its state changes only then (Graves, 2012; the same
tokens as NeMo's greedy search). As blanks change nothing, the joint may look at several frames at once and go on
behind the first token it finds (the idea of label-looping: Bataev et al., 2024): one joint call for most live steps.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parakeet_live.engine.backend import Emission
from parakeet_models.bundle import TokenIds
from parakeet_models.mel import Float32

MAX_SYMBOLS_PER_FRAME = 10
"""After this many tokens on one frame, decoding moves to the next frame (NeMo's default)."""


class DecoderNetworks(Protocol):
    """Prediction network and joint, as a backend runs them."""

    @property
    def look_ahead(self) -> int:
        """Frames of a row that one joint call looks at. Those behind a token are computed in vain, so more than a
        live step does not pay, and more than one only where a call costs more than its rows.
        """
        ...

    def predict(self, token: NDArray[np.int64], h: Float32, c: Float32) -> tuple[Float32, Float32, Float32]:
        """One step: token [R]; h, c [R, prediction_hidden] -> prediction [R, joint_hidden], new h, new c."""
        ...

    def best(self, encoded: Float32, predicted: Float32) -> tuple[NDArray[np.int64], Float32]:
        """encoded, predicted [R, joint_hidden] -> the best token of each row (ties: lowest id), its probability."""
        ...


class DecoderSizes(Protocol):
    """Length of the prediction network's states, and of its prediction, as the networks hand it to the joint."""

    @property
    def prediction_hidden(self) -> int: ...

    @property
    def joint_hidden(self) -> int: ...


class GreedyDecoder:
    """Owns the prediction-network state of every slot."""

    def __init__(
        self, networks: DecoderNetworks, geometry: DecoderSizes, tokens: TokenIds, slots: int
    ) -> None:
        self._networks = networks
        self._blank = tokens.blank
        self._ends = np.array([token for token in (tokens.eou, tokens.eob) if token is not None])
        self._h = np.zeros((slots, geometry.prediction_hidden), np.float32)
        self._c = np.zeros_like(self._h)
        self._predicted = np.zeros((slots, geometry.joint_hidden), np.float32)
        zero = np.zeros((1, geometry.prediction_hidden), np.float32)
        # The blank's embedding is zero: feeding it once from the zero state is NeMo's start of sequence.
        predicted, h, c = networks.predict(np.array([self._blank]), zero, zero)
        self._start_predicted, self._start_h, self._start_c = predicted[0], h[0], c[0]

    def restart(self, slot: int) -> None:
        """Put a slot's prediction network at the start of sequence."""
        self._h[slot], self._c[slot] = self._start_h, self._start_c
        self._predicted[slot] = self._start_predicted

    def decode(
        self, slots: NDArray[np.int64], encoded: Float32, frames: NDArray[np.int64]
    ) -> list[list[Emission]]:
        """Decode encoded [B, n, joint_hidden] of ``slots`` [B]; row b has ``frames[b]`` valid frames.

        An end token (EOU, EOB) resets its row to the start of sequence and ends its frame: the next frame belongs
        to the next utterance.
        """
        emissions: list[list[Emission]] = [[] for _ in slots]
        at = np.zeros(len(slots), np.int64)
        """Each row's frame, and below the tokens it has emitted on it."""
        symbols = np.zeros(len(slots), np.int64)
        while len(rows := np.flatnonzero(at < frames)):
            ahead = at[rows][:, None] + np.arange(self._networks.look_ahead)
            seen = ahead < frames[rows][:, None]
            looking, which = np.nonzero(seen)
            of = rows[looking]
            token, probability = self._networks.best(
                encoded[of, ahead[looking, which]], self._predicted[slots[of]]
            )
            hit = np.flatnonzero(token != self._blank)
            # The first hit of each row; `looking` ascends, so that is the first occurrence.
            found, first = np.unique(looking[hit], return_index=True)
            blank = np.ones(len(rows), bool)
            blank[found] = False
            at[rows[blank]] += seen[blank].sum(1)
            symbols[rows[blank]] = 0
            if not len(found):
                continue
            hit = hit[first]
            row, frame, token = rows[found], ahead[found, which[hit]], token[hit]
            symbols[row] = np.where(frame == at[row], symbols[row], 0) + 1
            at[row] = frame
            for r, t, f, p in zip(
                row.tolist(), token.tolist(), frame.tolist(), probability[hit].tolist(), strict=True
            ):
                emissions[r].append(Emission(t, f, p))
            ended = np.isin(token, self._ends)
            for slot in slots[row[ended]].tolist():
                self.restart(slot)
            over = row[ended | (symbols[row] == MAX_SYMBOLS_PER_FRAME)]
            at[over] += 1
            symbols[over] = 0
            if not ended.all():
                to = slots[row[~ended]]
                self._predicted[to], self._h[to], self._c[to] = self._networks.predict(
                    token[~ended], self._h[to], self._c[to]
                )
        return emissions
