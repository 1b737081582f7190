"""Every size of the network, and the 120M preset."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Sizes of one network. ``vocabulary`` counts the pieces including EOU and EOB; the blank is one more."""

    mel_bins: int
    d_model: int
    layers: int
    heads: int
    subsampling_channels: int
    prediction_hidden: int
    joint_hidden: int
    vocabulary: int
    use_bias: bool = False
    xscaling: bool = False
    feed_forward_expansion: int = 4
    conv_kernel: int = 9
    attention_left: int = 70
    attention_right: int = 1

    def __post_init__(self) -> None:
        if self.d_model % self.heads:
            raise ValueError(f"d_model {self.d_model} is not a multiple of heads {self.heads}")
        if self.attention_left % self.attention_chunk:
            raise ValueError(
                f"attention_left {self.attention_left} is not a multiple of the attention chunk "
                f"{self.attention_chunk} (attention_right + 1)"
            )

    @property
    def blank(self) -> int:
        """Id of the blank, which is also the start of sequence: one past the last piece."""
        return self.vocabulary

    @property
    def head_size(self) -> int:
        return self.d_model // self.heads

    @property
    def attention_chunk(self) -> int:
        """Encoder frames per attention chunk; a step must be a multiple of it."""
        return self.attention_right + 1

    @property
    def stage_widths(self) -> tuple[int, int, int]:
        """Frequency positions after each of the three subsampling stages."""
        first = self.mel_bins // 2 + 1
        second = first // 2 + 1
        return first, second, second // 2 + 1


PARAKEET_EOU_120M = NetworkConfig(
    mel_bins=128,
    d_model=512,
    layers=17,
    heads=8,
    subsampling_channels=256,
    prediction_hidden=640,
    joint_hidden=640,
    vocabulary=1026,
)
"""nvidia/parakeet_realtime_eou_120m-v1: 114,859,011 parameters."""
