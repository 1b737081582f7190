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

TOKEN_DROPOUT = 0.2
"""Share of the prediction network's inputs replaced by the zero embedding. The grammar is so regular that it learns
too much of it: one word misheard as `go` and no digit could follow."""


def tiny_config(vocabulary: int) -> NetworkConfig:
    """4.7 million parameters: 9.5 MB in half precision, and 80 times real time in training on one core."""
    return NetworkConfig(
        mel_bins=MEL.bins,
        d_model=144,
        layers=8,
        heads=4,
        subsampling_channels=64,
        prediction_hidden=192,
        joint_hidden=192,
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
        inputs = batch.decoder_inputs
        if self.training:
            inputs = inputs.masked_fill(torch.rand(inputs.shape) < TOKEN_DROPOUT, self.blank)
        predicted, _ = self.network.decoder(inputs)
        joint = self.network.joint
        heard = joint.enc(encoded).flatten(0, 1).index_select(0, batch.node_frames)
        said = joint.pred(predicted).flatten(0, 1).index_select(0, batch.node_states)
        logits: Tensor = joint.combine(heard, said)
        return logits

    def plain_state(self) -> dict[str, Tensor]:
        """State dict of the bare network, the normalisation folded in."""
        state = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        weight, bias = self.network.encoder.pre_encode.folded()
        state["encoder.pre_encode.conv.0.weight"] = weight.detach().clone()
        state["encoder.pre_encode.conv.0.bias"] = bias.detach().clone()
        return state
