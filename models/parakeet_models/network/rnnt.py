"""Prediction network and joint of the RNN transducer (Graves, 2012), with NeMo's key names."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.network.config import NetworkConfig

LstmState = tuple[Tensor, Tensor]
"""(h, c), each float[1, B, prediction_hidden]."""


class PredictionNetwork(nn.Module):
    """Embedding and one LSTM layer. The blank's embedding is zero and serves as the start of sequence."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden = config.prediction_hidden
        embed = nn.Embedding(config.vocabulary + 1, hidden, padding_idx=config.blank)
        dec_rnn = nn.ModuleDict({"lstm": nn.LSTM(hidden, hidden, batch_first=True)})
        self.prediction = nn.ModuleDict({"embed": embed, "dec_rnn": dec_rnn})

    @property
    def embed(self) -> nn.Embedding:
        return self.prediction["embed"]  # type: ignore[return-value]

    @property
    def lstm(self) -> nn.LSTM:
        return self.prediction["dec_rnn"]["lstm"]  # type: ignore[index,return-value]

    def forward(self, tokens: Tensor, state: LstmState | None = None) -> tuple[Tensor, LstmState]:
        """tokens int64[B, U] -> (float[B, U, prediction_hidden], state); ``None`` is the zero state."""
        return self.lstm(self.embed(tokens), state)


class Joint(nn.Module):
    """enc(encoder) + pred(prediction) -> ReLU -> logits over the pieces and the blank."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.enc = nn.Linear(config.d_model, config.joint_hidden)
        self.pred = nn.Linear(config.prediction_hidden, config.joint_hidden)
        # Index 1 is NeMo's dropout; keeping its place keeps the key `joint_net.2`.
        self.joint_net = nn.Sequential(
            nn.ReLU(), nn.Identity(), nn.Linear(config.joint_hidden, config.vocabulary + 1)
        )

    def combine(self, enc: Tensor, pred: Tensor) -> Tensor:
        """Already projected enc and pred, broadcast against each other -> logits[..., vocabulary + 1]."""
        return self.joint_net[2](F.relu(enc + pred))

    def forward(self, encoder: Tensor, prediction: Tensor) -> Tensor:
        """encoder [B, T, d_model], prediction [B, U, prediction_hidden] -> logits [B, T, U, vocabulary + 1]."""
        return self.combine(self.enc(encoder)[:, :, None], self.pred(prediction)[:, None])
