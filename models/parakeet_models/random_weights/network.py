"""Seeded random weights in a sane range, and a decoder that emits at a chosen rate.

Every layer of the encoder ends in a LayerNorm, so activations stay bounded however long a stream runs. Where
random weights alone would leave a projection insensitive or saturated (the mel features are far from zero mean),
its outputs are standardised on speech-like sound, as a trained network's would be. How the decoder is made to emit
is told in :mod:`parakeet_models.random_weights.decoder`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from parakeet_models.mel import Float32, MelParameters, log_mel
from parakeet_models.network import PARAKEET_EOU_120M, NetworkConfig, ParakeetNetwork
from parakeet_models.random_weights.decoder import EmissionRate, standardise, wire_decoder
from parakeet_models.random_weights.signal import quiet, speech_like

RANDOM_SIZES: dict[str, NetworkConfig] = {
    "120m": PARAKEET_EOU_120M,
    "tiny": NetworkConfig(
        mel_bins=40,
        d_model=48,
        layers=3,
        heads=4,
        subsampling_channels=8,
        prediction_hidden=32,
        joint_hidden=48,
        vocabulary=258,
    ),
}
"""``120m`` for benchmarks, ``tiny`` for tests."""

BRANCH_OUTPUTS = (
    "feed_forward1.linear2",
    "feed_forward2.linear2",
    "self_attn.linear_out",
    "conv.pointwise_conv2",
)
"""Last projection of each of a layer's four residual branches."""

SPEECH_SECONDS = 30.0
QUIET_SECONDS = 10.0


@torch.no_grad()
def random_network(
    config: NetworkConfig,
    mel: MelParameters,
    eou: int,
    rate: EmissionRate,
    seed: int = 0,
    speech: Float32 | None = None,
) -> ParakeetNetwork:
    """A network with random weights that emits at ``rate`` on speech and nothing in lasting silence.

    ``eou`` is the id of ``<EOU>``. The rate holds for ``speech`` float32[n] at the model's rate, or else for a
    speech-like sound, which moves faster than speech: on speech, the rate is then a third. The same arguments give
    the same weights on one machine.
    """
    torch.manual_seed(seed)
    network = ParakeetNetwork(config).eval()
    for module in network.modules():
        _draw(module)
    # Full-size branches would drown the frame in the averages of attention: after 17 layers all frames were equal.
    for layer in network.encoder.layers:
        for name in BRANCH_OUTPUTS:
            layer.get_submodule(name).weight *= (len(BRANCH_OUTPUTS) * config.layers) ** -0.5
    sound = _features(speech_like(SPEECH_SECONDS, seed), mel)
    silence = _features(quiet(QUIET_SECONDS, seed), mel)
    subsampling = network.encoder.pre_encode
    standardise(subsampling.out, _run(subsampling, torch.cat([sound, silence], 1)))
    heard = sound if speech is None else _features(speech, mel)
    wire_decoder(network, _run(network.encoder, heard), eou, rate)
    return network


def _draw(module: nn.Module) -> None:
    """Weights that keep the variance of what flows through, small biases; normalisations stay as they are."""
    if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        fan_in = module.weight[0].numel()
        # The convolutions of the subsampling are followed by a ReLU, which halves the power.
        gain = 2.0 if isinstance(module, nn.Conv2d) else 1.0
        module.weight.normal_(0.0, (gain / fan_in) ** 0.5)
        if module.bias is not None:
            module.bias.normal_(0.0, 0.1)
    for name, parameter in module.named_parameters(recurse=False):
        if name.startswith("pos_bias_"):
            parameter.normal_(0.0, 0.1)


def _features(samples: Float32, mel: MelParameters) -> Tensor:
    """float[1, T, bins]."""
    return torch.from_numpy(log_mel(samples, mel))[None]


def _run(module: nn.Module, mel: Tensor) -> Tensor:
    """float[T', d_model]: the subsampling's or the encoder's output for one signal."""
    return module(mel, torch.tensor([mel.shape[1]]))[0][0]
