"""A small random-weight bundle whose decoder emits words and ends of utterance at a lifelike rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sentencepiece
import torch

from parakeet_models.bundle import Bundle
from parakeet_models.export import Source, write_bundle
from parakeet_models.mel import MelParameters, log_mel
from parakeet_models.network import NetworkConfig, ParakeetNetwork

WORDS = "zero one two three four five six seven eight nine yes no okay hello thanks"
MEL = MelParameters(bins=40)
TOKENS_PER_FRAME = 0.3


def noise(seconds: float, seed: int) -> np.ndarray:
    """float32[n] at 16 kHz: noise in bursts, so that the network has something to react to."""
    rng = np.random.default_rng(seed)
    count = int(seconds * 16_000)
    envelope = np.abs(np.sin(np.arange(count) / rng.uniform(3000, 9000)))
    return (rng.standard_normal(count) * 0.1 * envelope).astype(np.float32)


def train_tokenizer(directory: Path) -> Path:
    """A real SentencePiece model over WORDS, with the two special pieces."""
    prefix = directory / "random"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 20),
        model_prefix=str(prefix),
        vocab_size=48,
        model_type="unigram",
        user_defined_symbols=["<EOU>", "<EOB>"],
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        unk_id=0,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


def random_network(vocabulary: int, eou: int, seed: int = 0) -> ParakeetNetwork:
    """Random weights; the blank's bias is set so that about TOKENS_PER_FRAME of the frames emit."""
    torch.manual_seed(seed)
    config = NetworkConfig(
        mel_bins=MEL.bins,
        d_model=48,
        layers=3,
        heads=4,
        subsampling_channels=8,
        prediction_hidden=32,
        joint_hidden=32,
        vocabulary=vocabulary,
    )
    network = ParakeetNetwork(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += torch.randn_like(parameter) * 0.08
        network.decoder.embed.weight[config.blank] = 0.0
        network.joint.pred.weight *= 0.3
        output = network.joint.joint_net[2]
        mel = torch.from_numpy(log_mel(noise(20.0, seed), MEL))[None]
        encoded, _ = network.encoder(mel, torch.tensor([mel.shape[1]]))
        prediction, _ = network.decoder(torch.tensor([[config.blank]]))
        logits = network.joint(encoded, prediction)[0, :, 0]
        # Every token equally likely on average, so that the sound decides and not a token's bias.
        scale = 4.0 / logits.std(0)
        output.weight *= scale[:, None]
        output.bias *= scale
        output.bias -= logits.mean(0) * scale
        logits = network.joint(encoded, prediction)[0, :, 0]
        lead = logits[:, : config.blank].max(-1).values - logits[:, config.blank]
        output.bias[config.blank] += torch.quantile(lead, 1.0 - TOKENS_PER_FRAME)
        output.bias[eou] += 1.0
    return network


def make_random_bundle(directory: Path, seed: int = 0) -> Bundle:
    """Write the bundle with the real exporter."""
    tokenizer = train_tokenizer(directory)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer))
    source = Source(
        random_network(pieces.GetPieceSize(), pieces.PieceToId("<EOU>"), seed),
        MEL,
        tokenizer.read_bytes(),
        name="random",
        description="random weights for tests",
        licence="Apache-2.0",
        origin=f"random weights, seed {seed}",
        weights_origin="random",
    )
    return write_bundle(source, directory / "bundle")
