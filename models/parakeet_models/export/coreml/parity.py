"""Do the packages of a bundle compute what the network computes? Measured where something can run them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from parakeet_models.bundle import Bundle, Parity
from parakeet_models.coreml_runtime import OpenModel, autorelease_pool
from parakeet_models.coreml_stream import EncoderStream, open_decoder, open_encoders
from parakeet_models.export.parity import PARITY_STEPS, TestAudio, streamed_tokens, token_agreement
from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.network import EncoderState, ParakeetNetwork, StreamingEncoder
from parakeet_models.packages import ComputeUnits


def measure_package_parity(
    network: ParakeetNetwork,
    bundle: Bundle,
    audio: TestAudio,
    open_model: OpenModel,
    units: ComputeUnits = ComputeUnits.CPU_AND_NE,
) -> Parity:
    """Run the packages of ``bundle``, the encoder on ``units``, against ``network``.

    PARITY_STEPS steps of mixed sizes, the state of one fed into the next; tokens on ``audio`` in live steps.
    """
    manifest = bundle.manifest
    encoders = open_encoders(bundle, open_model, units)
    stream = EncoderStream(manifest.geometry, bundle.packages.state, encoders)

    def step(mel: Tensor, begin: int, end: int) -> Tensor:
        with autorelease_pool():
            return torch.from_numpy(stream.step(mel.numpy(), begin, end))

    reference = StreamingEncoder(network, max(manifest.step_sizes))
    state = EncoderState.initial(network.config, 1)
    generator = torch.Generator().manual_seed(0)
    found, expected = [], []
    for index, size in enumerate(np.random.default_rng(0).choice(manifest.step_sizes, PARITY_STEPS).tolist()):
        mel = torch.randn(SUBSAMPLING_FACTOR * size + 1, manifest.mel.bins, generator=generator) * 3 - 8
        begin, end = SUBSAMPLING_FACTOR if index == 0 else 0, len(mel)
        found.append(step(mel, begin, end))
        expected.append(reference.step(mel[None], torch.tensor([begin]), torch.tensor([end]), state)[0])
    frames, error = torch.cat(expected), torch.cat(found) - torch.cat(expected)
    variation = (frames - frames.mean(0)).square().mean().sqrt()

    stream.reset()
    decoder = open_decoder(bundle, open_model, ComputeUnits.CPU_ONLY, ComputeUnits.CPU_ONLY)
    emitted = streamed_tokens(
        step, decoder, network.config, manifest.mel, manifest.tokens, manifest.step_sizes[0], audio
    )
    count, agreement = token_agreement(network, manifest.mel, manifest.tokens, audio, emitted)
    return Parity(
        max_difference=float(error.abs().max() / frames.abs().max().clamp(min=1.0)),
        relative_difference=float(error.square().mean().sqrt() / variation),
        steps=PARITY_STEPS,
        audio=audio.name,
        tokens=count,
        token_agreement=agreement,
    )
