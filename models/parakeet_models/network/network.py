"""Encoder, prediction network and joint under the key prefixes of a NeMo checkpoint."""

from __future__ import annotations

from torch import nn

from parakeet_models.network.config import NetworkConfig
from parakeet_models.network.encoder import Encoder
from parakeet_models.network.rnnt import Joint, PredictionNetwork


class ParakeetNetwork(nn.Module):
    """A whole network; ``state_dict`` keys are NeMo's ``encoder.*``, ``decoder.*`` and ``joint.*``."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = PredictionNetwork(config)
        self.joint = Joint(config)
