"""The network under training: `ParakeetNetwork` plus what only training needs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from parakeet_models.network import NetworkConfig, ParakeetNetwork

from .batches import Batch
from .features import MEL
from .front_end import TrainingSubsampling
from .sounds import QUIET, SLOTS

SOUND_LAYER = 4
"""The layer, from 0, after which the sounds are to be known: those behind it put words together."""

TOKEN_DROPOUT = 0.1
"""Share of the prediction network's inputs replaced by the zero embedding. The grammar is so regular that it learns
too much of it: one word misheard as `go` and no digit could follow."""

FALSE_START = (0.25, 3)
FALSE_WORD = 0.12
MOST_FALSE = 4
"""What the prediction network is told has been said, and has not: before the first word of a share of the utterances,
one to so many tokens; after any word, with this probability, one; in all not more than this.

With histories that are always right, the transducer *counts*: the encoder knows how many words it has heard since the
last end, the prediction network how many have been written, and while the two agree nothing is written. One false word
in a long sentence then silenced as many true ones, words of which the encoder was sure at 0.97. Decoding with the last
three words as history instead of all showed it: words were written over and over."""


def tiny_config(vocabulary: int) -> NetworkConfig:
    """5.1 million parameters: 10 MB in half precision, and 80 times real time in training on one core."""
    return NetworkConfig(
        mel_bins=MEL.bins,
        d_model=144,
        layers=8,
        heads=4,
        subsampling_channels=64,
        prediction_hidden=192,
        joint_hidden=480,
        vocabulary=vocabulary,
    )


class TrainingModel(nn.Module):
    """The network, its input normalisation, the head of the frame-level and CTC losses, and that of the sounds."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.network = ParakeetNetwork(config)
        self.network.encoder.pre_encode = TrainingSubsampling(config)
        self.frame_head = nn.Linear(config.d_model, config.vocabulary + 1)
        self.sound_head = nn.Linear(config.d_model, SLOTS * (QUIET + 1))
        self._middle: Tensor | None = None
        self.network.encoder.layers[SOUND_LAYER].register_forward_hook(self._keep_middle)

    @property
    def blank(self) -> int:
        return self.network.config.blank

    @torch.no_grad()
    def initialise(self, mel: Tensor) -> None:
        """He initialisation of the subsampling and unit-variance output on real features [B, T, bins].

        With the default initialisation the encoder input is nearly constant over time and learning stalls.
        """
        pre_encode = self.network.encoder.pre_encode
        for module in pre_encode.conv:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
                if module.bias is not None:
                    module.bias.zero_()
        out, _ = pre_encode(mel, torch.full((len(mel),), mel.shape[1]))
        flat = out.reshape(-1, out.shape[-1])
        spread = flat.std(0)
        pre_encode.out.weight.div_(spread[:, None])
        pre_encode.out.bias.copy_((pre_encode.out.bias - flat.mean(0)) / spread)

    def _keep_middle(self, _layer: nn.Module, _inputs: object, output: Tensor) -> None:
        self._middle = output

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Encoder output [B, T', d_model], its valid lengths int64[B], and logits of the sounds
        [B, T', SLOTS, QUIET + 1]."""
        encoded, lengths = self.network.encoder(batch.mel, batch.mel_lengths)
        middle, self._middle = self._middle, None
        sounds = self.sound_head(middle).unflatten(-1, (SLOTS, QUIET + 1))
        return encoded, lengths, sounds

    def transducer_logits(self, encoded: Tensor, batch: Batch) -> Tensor:
        """Joint logits [N, V + 1] of the lattice nodes, the prediction network starting anew at each utterance."""
        inputs, states = batch.decoder_inputs, batch.node_states
        if self.training:
            inputs, states = with_false_history(inputs, states, self.blank)
            inputs = inputs.masked_fill(torch.rand(inputs.shape) < TOKEN_DROPOUT, self.blank)
        predicted, _ = self.network.decoder(inputs)
        joint = self.network.joint
        heard = joint.enc(encoded).flatten(0, 1).index_select(0, batch.node_frames)
        said = joint.pred(predicted).flatten(0, 1).index_select(0, states)
        logits: Tensor = joint.combine(heard, said)
        return logits

    def plain_state(self) -> dict[str, Tensor]:
        """State dict of the bare network, the normalisation folded in."""
        state = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        weight, bias = self.network.encoder.pre_encode.folded()
        state["encoder.pre_encode.conv.0.weight"] = weight.detach().clone()
        state["encoder.pre_encode.conv.0.bias"] = bias.detach().clone()
        return state


def with_false_history(inputs: Tensor, states: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Put tokens that were not said between those that were.

    Args:
        inputs: int64[rows, U], a row an utterance: blank, then what was said; blank behind the end.
        states: int64[N], places in the flattened outputs of the prediction network.
        blank: the token that stands for nothing.

    Returns:
        Inputs int64[rows, U + MOST_FALSE], and the places in their outputs at which the same has truly been said.
    """
    rows, width = inputs.shape
    said = inputs[inputs != blank]
    extra = (torch.rand(rows, width) < FALSE_WORD).long()
    share, most = FALSE_START
    extra[:, 0] = torch.randint(1, most + 1, (rows,)) * (torch.rand(rows) < share)
    extra[0, 0] = 0  # the start that stands for every start (`batches`)
    behind = extra.cumsum(1).clamp(max=MOST_FALSE)
    before = torch.cat([torch.zeros(rows, 1, dtype=torch.long), behind[:, :-1]], 1)
    filler = said if len(said) else torch.tensor([blank])
    filled = filler[torch.randint(len(filler), (rows, width + MOST_FALSE))]
    places = torch.arange(width)
    filled.scatter_(1, places + before, inputs)
    row, place = states // width, states % width
    return filled, row * (width + MOST_FALSE) + place + behind[row, place]
