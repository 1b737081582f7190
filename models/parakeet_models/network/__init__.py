"""The network in plain PyTorch: FastConformer encoder, prediction network and joint, with NeMo's state-dict names.

Needs torch (extras ``convert`` and ``train``); the server never imports this package.
"""

from parakeet_models.network.config import PARAKEET_EOU_120M, NetworkConfig
from parakeet_models.network.greedy import GreedyToken, greedy_decode
from parakeet_models.network.network import ParakeetNetwork
from parakeet_models.network.streaming import EncoderState, StreamingEncoder

__all__ = [
    "PARAKEET_EOU_120M",
    "EncoderState",
    "GreedyToken",
    "NetworkConfig",
    "ParakeetNetwork",
    "StreamingEncoder",
    "greedy_decode",
]
