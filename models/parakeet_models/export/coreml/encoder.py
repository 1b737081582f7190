"""The streaming encoder in the Neural Engine's layout, for steps of one fixed size and one stream."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parakeet_models.coreml import CACHES, cache_shapes
from parakeet_models.export.coreml.layer import ChannelsFirstLayer, pointwise
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.network.conformer import MASKED, sinusoidal_positions
from parakeet_models.network.network import ParakeetNetwork
from parakeet_models.network.subsampling import FREQUENCY_PADDING


def at_least_one(x: Tensor) -> Tensor:
    """1.0 where the whole number x is 1 or more, else 0.0: a comparison without booleans or integers."""
    return x.clamp(0.0, 1.0)


class ChannelsFirstEncoder(nn.Module):
    """One step of ``step`` encoder frames. First, middle and last steps are one graph, as in ``network.streaming``."""

    def __init__(self, network: ParakeetNetwork, step: int) -> None:
        """Raises ValueError if the step breaks the attention chunks or does not fit the attention cache."""
        super().__init__()
        config = network.config
        chunk, left = config.attention_chunk, config.attention_left
        if step < 1 or step % chunk or step > left:
            raise ValueError(
                f"a step of {step} encoder frames is impossible: use a multiple of {chunk}, at most {left}"
            )
        self.config, self.step = config, step
        encoder = network.encoder
        self.conv = encoder.pre_encode.conv
        flat = encoder.pre_encode.out
        self.subsampled = pointwise(flat.weight * encoder.scale, flat.bias * encoder.scale)
        distances = torch.arange(left + step - 1, -step, -1)
        positions = sinusoidal_positions(distances, config.d_model)
        self.layers = nn.ModuleList(ChannelsFirstLayer(layer, positions, step) for layer in encoder.layers)
        self.projection = pointwise(network.joint.enc.weight, network.joint.enc.bias)
        self._register_tables()

    def _register_tables(self) -> None:
        config, step = self.config, self.step
        chunk, left = config.attention_chunk, config.attention_left
        for stage in range(3):
            stride = 2**stage
            first = torch.arange(SUBSAMPLING_FACTOR * step // stride + (stage == 0)) * stride
            self.register_buffer(f"window{stage}", first.float().view(1, 1, -1, 1))
        age = torch.cat(
            [torch.arange(left, 0, -1), -torch.arange(step)]
        )  # of a key, against the step's first frame
        behind = torch.arange(step)[None] // chunk - torch.div(-age, chunk, rounding_mode="floor")[:, None]
        outside = (behind < 0) | (behind > left // chunk)
        self.register_buffer("outside", (outside * MASKED).view(1, left + step, 1, step))
        self.register_buffer("cached", torch.arange(left).float().view(1, left, 1, 1))
        self.register_buffer("new", torch.arange(step).float().view(1, step, 1, 1))

    def valid_window(self, stage: int, begin: Tensor, end: Tensor) -> Tensor:
        """1.0 on the frames of a subsampling stage that lie in the stream, [1, 1, frames, 1].

        The halving of ``begin`` and ``end`` from stage to stage, solved for whole numbers: frame i of a stage
        exists when begin < 2^stage * i + margin and end > 2^stage * i + (0 on the mel, else 1).
        """
        index, margin = getattr(self, f"window{stage}"), (1, 4, 8)[stage]
        return at_least_one(index + margin - begin) * at_least_one(end - index - (0 if stage == 0 else 1))

    def subsample(
        self, mel: Tensor, begin: Tensor, end: Tensor, stage1: Tensor, stage2: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """mel [1, 1, 8 * step + 1, bins] and stage caches -> ([1, d_model, 1, step], new stage1, new stage2)."""

        def strided(x: Tensor, conv: nn.Module) -> Tensor:
            return conv(F.pad(x, (*FREQUENCY_PADDING, 0, 0)))

        x = strided(mel * self.valid_window(0, begin, end), self.conv[0]).relu()
        x = x * self.valid_window(1, begin, end)
        new_stage1 = x[:, :, -1:]
        x = self.conv[3](strided(torch.cat([stage1, x], 2), self.conv[2])).relu()
        x = x * self.valid_window(2, begin, end)
        new_stage2 = x[:, :, -1:]
        x = self.conv[6](strided(torch.cat([stage2, x], 2), self.conv[5])).relu()
        x = x.transpose(2, 3).reshape(1, -1, 1, self.step)
        return self.subsampled(x), new_stage1, new_stage2

    def attention_mask(self, end: Tensor, valid: Tensor) -> Tensor:
        """What is added to the scores, [1, left + step, 1, step]."""
        absent = at_least_one(self.config.attention_left - valid - self.cached)
        beyond = at_least_one(self.new * SUBSAMPLING_FACTOR + 2 - end)
        return torch.cat([absent, beyond], 1) * MASKED + self.outside

    def forward(
        self,
        mel: Tensor,
        begin: Tensor,
        end: Tensor,
        valid: Tensor,
        stage1: Tensor,
        stage2: Tensor,
        keys: Tensor,
        values: Tensor,
        conv: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One step; caches as in ``coreml.cache_shapes``.

        mel [1, 1, 8 * step + 1, bins] as in ``network.streaming.StreamingEncoder.forward``; ``begin`` (8 on a first
        step, else 0), ``end`` (one past the last valid mel frame) and ``valid`` (cached frames that exist) are
        whole numbers in [1, 1, 1, 1].

        Returns the projected frames [1, joint_hidden, 1, step] and the new caches, to be given to the next step.
        """
        x, new_stage1, new_stage2 = self.subsample(mel, begin, end, stage1, stage2)
        mask = self.attention_mask(end, valid)
        new_keys, new_values, new_conv = [], [], []
        for index, layer in enumerate(self.layers):
            row = slice(index, index + 1)
            x, key, value, frames = layer(x, keys[row], values[row], conv[row], mask)
            new_keys.append(key)
            new_values.append(value)
            new_conv.append(frames)
        return (
            self.projection(x),
            new_stage1,
            new_stage2,
            torch.cat([keys[:, self.step :], torch.cat(new_keys, 0)], 1),
            torch.cat([values[..., self.step :], torch.cat(new_values, 0)], 3),
            torch.cat(new_conv, 0),
        )


class StatefulEncoder(nn.Module):
    """The same step with the caches in buffers, which the converter turns into Core ML states of the same names."""

    def __init__(self, encoder: ChannelsFirstEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        for name, shape in cache_shapes(encoder.config).items():
            self.register_buffer(name, torch.zeros(shape))

    def forward(self, mel: Tensor, begin: Tensor, end: Tensor, valid: Tensor) -> Tensor:
        encoded, *caches = self.encoder(
            mel, begin, end, valid, self.stage1, self.stage2, self.keys, self.values, self.conv
        )
        for name, cache in zip(CACHES, caches, strict=True):
            getattr(self, name)[:] = cache
        return encoded
