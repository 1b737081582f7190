"""The graphs that the published exports consist of, as PyTorch modules around a network of ours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from parakeet_models.export.nemo_layout import NemoEncoder
from parakeet_models.network import NetworkConfig, ParakeetNetwork

TOP_K = 64


class LoopbackEncoder(nn.Module):
    """soniqo and FluidInference: mel frames before the window come in as ``pre_cache``; caches are layers first."""

    def __init__(
        self, network: ParakeetNetwork, pre_frames: int, *, cache_drop: int = 0, time_major: bool = False
    ) -> None:
        super().__init__()
        self.encoder = NemoEncoder(network, cache_drop)
        self.pre_frames = pre_frames
        self.time_major = time_major

    def forward(
        self, signal: Tensor, length: Tensor, pre: Tensor, channel: Tensor, time: Tensor, valid: Tensor
    ) -> tuple[Tensor, ...]:
        full = torch.cat([pre, signal], 2)
        encoded, count, channel, time, valid = self.encoder(
            full, length + self.pre_frames, channel.transpose(0, 1), time.transpose(0, 1), valid
        )
        if self.time_major:
            encoded = encoded.transpose(1, 2)
        # As published: the end of the window, although the next window begins before it.
        new_pre = full[:, :, -self.pre_frames :]
        return (encoded, count.int(), new_pre, channel.transpose(0, 1), time.transpose(0, 1), valid.int())


class LayersFirstEncoder(nn.Module):
    """altunenes: whole windows, caches layers first."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.encoder = NemoEncoder(network)

    def forward(
        self, signal: Tensor, length: Tensor, channel: Tensor, time: Tensor, valid: Tensor
    ) -> tuple[Tensor, ...]:
        encoded, count, channel, time, valid = self.encoder(
            signal, length, channel.transpose(0, 1), time.transpose(0, 1), valid
        )
        return encoded, count, channel.transpose(0, 1), time.transpose(0, 1), valid


class Prediction(nn.Module):
    """Prediction network: [1, hidden, 1] with ``target_length`` (FluidInference), or [1, 1, hidden] (soniqo)."""

    def __init__(self, network: ParakeetNetwork, *, time_major: bool) -> None:
        super().__init__()
        self.decoder = network.decoder
        self.time_major = time_major

    def forward(self, token: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out, (h, c) = self.decoder(token, (h, c))
        return out if self.time_major else out.transpose(1, 2), h, c


class CountingPrediction(Prediction):
    """With the number of tokens, which changes nothing."""

    def forward(self, token: Tensor, count: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().forward(token * count[:, None], h, c)


class LogitsJoint(nn.Module):
    """soniqo: frames are [1, 1, size], logits come out."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.joint = network.joint

    def forward(self, encoder: Tensor, prediction: Tensor) -> Tensor:
        return self.joint(encoder, prediction)


class DecidingJoint(nn.Module):
    """FluidInference: frames are [1, size, 1]; the best token, its probability and the best few come out."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.joint = network.joint

    def forward(self, encoder: Tensor, prediction: Tensor) -> tuple[Tensor, ...]:
        logits = self.joint(encoder.transpose(1, 2), prediction.transpose(1, 2))
        best, ids = logits.topk(min(TOP_K, logits.shape[-1]), -1)
        return logits.argmax(-1).int(), logits.softmax(-1).amax(-1), ids.int(), best


class FusedDecoder(nn.Module):
    """FluidInference: prediction network and deciding joint in one graph."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.decoder, self.joint = network.decoder, network.joint

    def forward(self, token: Tensor, h: Tensor, c: Tensor, encoder: Tensor) -> tuple[Tensor, ...]:
        out, (h, c) = self.decoder(token, (h, c))
        logits = self.joint(encoder.transpose(1, 2), out)
        return logits.argmax(-1).int(), logits.softmax(-1).amax(-1), h, c


class DecoderJoint(nn.Module):
    """altunenes: NeMo's own export of prediction network and joint; logits come out."""

    def __init__(self, network: ParakeetNetwork) -> None:
        super().__init__()
        self.decoder, self.joint = network.decoder, network.joint

    def forward(
        self, encoder: Tensor, token: Tensor, count: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, ...]:
        out, (h, c) = self.decoder(token, (h, c))
        return self.joint(encoder.transpose(1, 2), out), count * 1, h, c


def empty_caches(config: NetworkConfig) -> tuple[Tensor, Tensor]:
    """Attention and convolution caches of one stream, layers first."""
    return (
        torch.zeros(config.layers, 1, config.attention_left, config.d_model),
        torch.zeros(config.layers, 1, config.d_model, config.conv_kernel - 1),
    )
