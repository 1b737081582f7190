"""Folders that look like the published Core ML exports of the full-size network to whoever reads their descriptions.

They hold ``metadata.json`` as the compiler writes it and no program, so they show what is recognised, not what runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from parakeet_models.network import PARAKEET_EOU_120M
from support.layouts.config import STREAMING, write_soniqo_config
from support.layouts.vocabularies import write_vocab_json

PIECES = ["<unk>", *(f"▁p{index}" for index in range(1023)), "<EOU>", "<EOB>"]
CACHES = {"channel": [17, 1, 70, 512], "time": [17, 1, 512, 8]}
STATE = [1, 1, 640]


def describe_model(path: Path, inputs: Mapping[str, list[int]], outputs: Mapping[str, list[int]]) -> None:
    """A compiled model's folder; names that tell of integers get Int32, everything else Float32."""
    path.mkdir(parents=True)

    def kind(name: str) -> str:
        whole = "len" in name or name in ("token", "targets", "token_id", "top_k_ids")
        return "Int32" if whole else "Float32"

    def schema(ports: Mapping[str, list[int]]) -> list[dict[str, str]]:
        return [
            {"name": name, "type": "MultiArray", "dataType": kind(name), "shape": json.dumps(shape)}
            for name, shape in ports.items()
        ]

    content = [{"inputSchema": schema(inputs), "outputSchema": schema(outputs), "userDefinedMetadata": {}}]
    (path / "metadata.json").write_text(json.dumps(content), encoding="utf-8")


def describe_encoder(path: Path, pre_frames: int, mel_frames: int, encoded: list[int]) -> None:
    """An encoder with a looped-back ``pre_cache``."""
    caches = {f"cache_last_{name}": shape for name, shape in (*CACHES.items(), ("channel_len", [1]))}
    pre = [1, 128, pre_frames]
    describe_model(
        path,
        {"audio_signal": [1, 128, mel_frames], "audio_length": [1], "pre_cache": pre, **caches},
        {
            "encoded_output": encoded,
            "encoded_length": [1],
            "new_pre_cache": pre,
            **{f"new_{name}": shape for name, shape in caches.items()},
        },
    )


def describe_soniqo(directory: Path, streaming: dict[str, int] | None = None) -> Path:
    """``Parakeet-EOU-120M-CoreML-INT8``; ``streaming`` replaces numbers of its cadence."""
    stated = STREAMING | (streaming or {})
    describe_encoder(directory / "encoder.mlmodelc", stated["preCacheSize"], stated["melFrames"], [1, 8, 512])
    describe_model(
        directory / "decoder.mlmodelc",
        {"token": [1, 1], "h": STATE, "c": STATE},
        {"decoder_output": STATE, "h_out": STATE, "c_out": STATE},
    )
    frames = {"encoder_output": [1, 1, 512], "decoder_output": STATE}
    describe_model(directory / "joint.mlmodelc", frames, {"logits": [1, 1, 1, 1027]})
    write_vocab_json(directory, PIECES)
    write_soniqo_config(directory, PARAKEET_EOU_120M, PIECES, stated)
    return directory


def describe_fluidinference(directory: Path, pre_frames: int, mel_frames: int, frames: int) -> Path:
    """A folder of ``parakeet-realtime-eou-120m-coreml``, with both forms of the decoder."""
    describe_encoder(directory / "streaming_encoder.mlmodelc", pre_frames, mel_frames, [1, 512, frames])
    describe_model(
        directory / "decoder.mlmodelc",
        {"targets": [1, 1], "target_length": [1], "h_in": STATE, "c_in": STATE},
        {"decoder": [1, 640, 1], "h_out": STATE, "c_out": STATE},
    )
    one, top = [1, 1, 1], [1, 1, 1, 64]
    describe_model(
        directory / "joint_decision.mlmodelc",
        {"encoder_step": [1, 512, 1], "decoder_step": [1, 640, 1]},
        {"token_id": one, "token_prob": one, "top_k_ids": top, "top_k_logits": top},
    )
    describe_model(
        directory / "decoder_joint_decision_fused.mlmodelc",
        {"targets": [1, 1], "h_in": STATE, "c_in": STATE, "encoder_step": [1, 512, 1]},
        {"token_id": one, "token_prob": one, "h_out": STATE, "c_out": STATE},
    )
    # As in files of older converters: outputs without their shapes, a vocabulary without the ends.
    for description in directory.glob("*/metadata.json"):
        (content,) = json.loads(description.read_text("utf-8"))
        for port in content["outputSchema"]:
            port["shape"] = "[]"
        description.write_text(json.dumps([content]), encoding="utf-8")
    write_vocab_json(directory, PIECES[:-2])
    return directory
