"""Networks with seeded random weights, for benchmarks on machines without a checkpoint. Needs the extra ``convert``.

They cost what the real network costs and emit tokens and ends of utterance at a chosen rate; their words are noise.
"""

from parakeet_models.random_weights.network import RANDOM_SIZES, EmissionRate, random_network
from parakeet_models.random_weights.tokenizer import train_random_tokenizer

__all__ = ["RANDOM_SIZES", "EmissionRate", "random_network", "train_random_tokenizer"]
