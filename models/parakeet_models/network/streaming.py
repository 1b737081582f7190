"""The streaming encoder: any even number of new frames per step, exact against the offline encoder.

What makes it cheap (all exact; the measured effect is in docs/performance.md):

* attention caches hold *projected* keys and values in rings owned by the host, and a step returns only the new
  rows, so nothing is projected twice and no cache is copied inside the graph;
* the position projection depends on weights only and is folded into a constant per layer;
* the subsampling keeps the last frame of each stage instead of recomputing nine mel frames at every step.

One graph serves first, middle and last steps. Causal subsampling pads with zeros *at every stage*, so a first step
is a middle step whose frames before the stream begins are masked to zero at every stage, and a last one is a step
whose frames after its end are masked. Rows of a batch can therefore be of any age.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parakeet_models.frames import SUBSAMPLING_FACTOR, valid_frames
from parakeet_models.network.config import NetworkConfig
from parakeet_models.network.conformer import MASKED, sinusoidal_positions
from parakeet_models.network.folded import FoldedLayer
from parakeet_models.network.graph_ops import frequency_padded_conv, reshape
from parakeet_models.network.network import ParakeetNetwork

MAX_STEP = 16
"""Most encoder frames in one step; bounds the folded position tables."""


@dataclass(slots=True)
class EncoderState:
    """Caches of a batch of streams; what a backend's slot holds for each.

    ``stage1``/``stage2``: last output frame of the first two subsampling stages, [B, channels, 1, width].
    ``keys``, ``values``: per layer a ring [B, heads, 1, attention_left, head_size], so that a frame's part is whole
    cache lines. The axis of one is where the products with one query at a time broadcast.
    ``conv``: per layer the last ``conv_kernel - 1`` gated frames, [B, conv_kernel - 1, d_model].
    ``position``: int64[B], next ring slot to write. ``valid``: int64[B], ring slots that hold frames.
    """

    stage1: Tensor
    stage2: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    conv: list[Tensor]
    position: Tensor
    valid: Tensor

    @classmethod
    def initial(cls, config: NetworkConfig, batch: int) -> EncoderState:
        """The state of ``batch`` streams that have not begun."""
        width1, width2, _ = config.stage_widths
        ring = (batch, config.heads, 1, config.attention_left, config.head_size)
        conv = (batch, config.conv_kernel - 1, config.d_model)
        return cls(
            stage1=torch.zeros(batch, config.subsampling_channels, 1, width1),
            stage2=torch.zeros(batch, config.subsampling_channels, 1, width2),
            keys=[torch.zeros(ring) for _ in range(config.layers)],
            values=[torch.zeros(ring) for _ in range(config.layers)],
            conv=[torch.zeros(conv) for _ in range(config.layers)],
            position=torch.zeros(batch, dtype=torch.int64),
            valid=torch.zeros(batch, dtype=torch.int64),
        )


class StreamingEncoder(nn.Module):
    """Runs a network's encoder step by step; ``forward`` is pure and is what the converters trace.

    The output is ``joint.enc`` of the encoder frames, the only form the decoder needs. Weights are folded for the
    run time in the constructor, so a later change of the network's weights is not seen here.
    """

    def __init__(self, network: ParakeetNetwork, max_step: int = MAX_STEP) -> None:
        super().__init__()
        self.config = network.config
        self.encoder = network.encoder
        self.projection = network.joint.enc
        self.max_step = max_step
        # Distances (query minus key) from the oldest ring frame seen by the last new one, down to the newest key
        # seen by the first.
        self.farthest = self.config.attention_left + max_step - 1
        distances = torch.arange(self.farthest, -max_step, -1)
        table = sinusoidal_positions(distances, self.config.d_model)
        with torch.no_grad():
            self.layers = nn.ModuleList(FoldedLayer(layer, table) for layer in self.encoder.layers)

    def subsample(
        self, mel: Tensor, begin: Tensor, end: Tensor, stage1: Tensor, stage2: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """mel [B, 8n+1, bins] and stage caches -> ([B, n, d_model], new stage1, new stage2)."""

        def window(first: Tensor, last: Tensor, size: Tensor) -> Tensor:
            index = torch.arange(size, device=mel.device)[None]
            return ((index >= first[:, None]) & (index < last[:, None])).to(mel.dtype)[:, None, :, None]

        conv = self.encoder.pre_encode.conv
        x = mel[:, None] * window(begin, end, mel.shape[1])
        x = frequency_padded_conv(x, conv[0]).relu()
        end = end // 2
        x = x * window(begin // 2 - 1, end, x.shape[2])
        new_stage1 = x[:, :, -1:]
        x = conv[3](frequency_padded_conv(torch.cat([stage1, x], 2), conv[2])).relu()
        end = (end + 1) // 2
        x = x * window(begin // 4 - 1, end, x.shape[2])
        new_stage2 = x[:, :, -1:]
        x = conv[6](frequency_padded_conv(torch.cat([stage2, x], 2), conv[5])).relu()
        x = reshape(x.transpose(1, 2), 0, 0, -1)
        return self.encoder.pre_encode.out(x) * self.encoder.scale, new_stage1, new_stage2

    def attention_tables(
        self, frames: Tensor, valid_frames: Tensor, position: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Which row of the position table each (query, key) pair uses, and the mask to add to its score.

        Keys are [ring slots | new frames]. Returns int64[B, n, left + n] and float32[B, 1, n, 1, left + n].
        Streams advance in whole chunks, so chunk arithmetic relative to the step's first frame is exact.
        """
        left, chunk = self.config.attention_left, self.config.attention_chunk
        device = position.device
        query = torch.arange(frames, device=device)[None, :, None]
        slot = torch.arange(left, device=device)[None]
        age = torch.remainder(position[:, None] - 1 - slot, left)[:, None, :]
        new = torch.arange(frames, device=device)[None, None, :]
        batch = position.shape[0]
        ring_distance = query + 1 + age
        new_distance = (query - new).expand(batch, -1, -1)
        rows = self.farthest - torch.cat([ring_distance, new_distance], 2)
        ring_chunks = query // chunk + age // chunk + 1
        ring_hidden = (age >= valid[:, None, None]) | (ring_chunks > left // chunk)
        new_chunks = query // chunk - new // chunk
        new_outside = (new_chunks < 0) | (new_chunks > left // chunk)
        new_hidden = (new >= valid_frames[:, None, None]) | new_outside
        hidden = torch.cat([ring_hidden, new_hidden], 2)
        return rows, hidden.to(torch.float32)[:, None, :, None] * MASKED

    def forward(
        self,
        mel: Tensor,
        begin: Tensor,
        end: Tensor,
        position: Tensor,
        valid: Tensor,
        stage1: Tensor,
        stage2: Tensor,
        keys: list[Tensor],
        values: list[Tensor],
        conv: list[Tensor],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, list[Tensor]]:
        """One step of n = (mel.shape[1] - 1) / 8 encoder frames, n a multiple of the attention chunk.

        mel float32[B, 8n + 1, bins]: the last mel frame of the step before and 8n new ones. A first step has eight
        frames before the stream and 8n - 7 of it; ``begin`` int64[B] counts the masked frames at the start
        (8 on a first step, else 0) and ``end`` int64[B] is one past the last valid frame (8n + 1 except on the
        last step of a stream). Other arguments as in :class:`EncoderState`.

        Returns the projected frames [B, n, joint_hidden], new stage1 and stage2, the new rows of all rings
        [B, layers * 2 * heads, 1, n, head_size], each layer's keys before its values, and per layer the new conv
        cache. A last step's frames at or beyond ``valid_frames(end)`` are meaningless and its caches must be
        discarded.
        """
        x, new_stage1, new_stage2 = self.subsample(mel, begin, end, stage1, stage2)
        batch, frames = x.shape[0], x.shape[1]
        rows, mask = self.attention_tables(frames, valid_frames(end), position, valid)
        rows = rows.view(1, batch * frames, -1).expand(self.config.heads, -1, -1)
        by_head = torch.stack([torch.as_tensor(i) for i in (self.config.heads, batch, frames, 1, -1)])
        kernel = torch.arange(self.config.conv_kernel, device=x.device)
        windows = torch.arange(frames, device=x.device)[:, None] + kernel[None]
        new_rows, new_conv = [], []
        for index, layer in enumerate(self.layers):
            x, kv, c = layer(x, keys[index], values[index], conv[index], rows, mask, by_head, windows)
            new_rows.append(kv)
            new_conv.append(c)
        return self.projection(x), new_stage1, new_stage2, torch.cat(new_rows, 1), new_conv

    @torch.inference_mode()
    def step(self, mel: Tensor, begin: Tensor, end: Tensor, state: EncoderState) -> Tensor:
        """:meth:`forward`, then the ring writes a host does: updates ``state``, returns the projected frames."""
        frames = (mel.shape[1] - 1) // SUBSAMPLING_FACTOR
        if frames < 1 or frames % self.config.attention_chunk:
            raise ValueError(
                f"a step of {frames} encoder frames breaks the attention chunks; "
                f"use a multiple of {self.config.attention_chunk}"
            )
        if frames > self.max_step:
            raise ValueError(
                f"a step of {frames} encoder frames is beyond the folded positions; max_step is {self.max_step}"
            )
        out, state.stage1, state.stage2, new, state.conv = self(
            mel,
            begin,
            end,
            state.position,
            state.valid,
            state.stage1,
            state.stage2,
            state.keys,
            state.values,
            state.conv,
        )
        left = self.config.attention_left
        kept = min(frames, left)
        offsets = torch.arange(frames - kept, frames)
        rings = [ring for pair in zip(state.keys, state.values, strict=True) for ring in pair]
        for row in range(mel.shape[0]):
            slots = (state.position[row] + offsets) % left
            for ring, frames_of_ring in zip(rings, new[row].split(self.config.heads), strict=True):
                ring[row][..., slots, :] = frames_of_ring[..., -kept:, :]
        state.position = (state.position + frames) % left
        state.valid = torch.clamp(state.valid + frames, max=left)
        return out
