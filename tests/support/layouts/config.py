"""soniqo's ``config.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parakeet_models.network import NetworkConfig

STREAMING = {"chunkMs": 320, "melFrames": 64, "preCacheSize": 9, "outputFrames": 4}


def write_soniqo_config(
    directory: Path, config: NetworkConfig, pieces: Sequence[str], streaming: Mapping[str, int] = STREAMING
) -> None:
    """With the numbers of this network, and the published cadence."""
    content: dict[str, Any] = {
        "numMelBins": config.mel_bins,
        "sampleRate": 16000,
        "nFFT": 512,
        "hopLength": 160,
        "winLength": 400,
        "preEmphasis": 0.97,
        "encoderHidden": config.d_model,
        "encoderLayers": config.layers,
        "subsamplingFactor": 8,
        "attentionContext": config.attention_left,
        "convCacheSize": config.conv_kernel - 1,
        "decoderHidden": config.prediction_hidden,
        "decoderLayers": 1,
        "vocabSize": config.vocabulary,
        "blankTokenId": config.blank,
        "eouTokenId": pieces.index("<EOU>"),
        "eobTokenId": pieces.index("<EOB>"),
        "streaming": dict(streaming),
    }
    (directory / "config.json").write_text(json.dumps(content, indent=2), encoding="utf-8")
