"""What callers say more often than the training streams do, put into the last bias of the joint.

A classifier trained on one mix of classes and used on another is corrected by the logarithm of how much more frequent
each class is there (Saerens et al., "Adjusting the outputs of a classifier to new a priori probabilities", 2002).
"""

from __future__ import annotations

from torch import Tensor

from .lexicon import SPOKEN_DIGITS
from .tokenizer import Tokenizer

DIGIT_PRIOR = 0.7
"""Added to the logit of each digit, in nats: digits are twice as likely as in training. A digit with an accent sounds
like one of 555 words ("pin" for "three", "calls" for "four"), but in what is said to such servers it rarely is."""

_BIAS = "joint.joint_net.2.bias"


def with_prior(state: dict[str, Tensor], tokenizer: Tokenizer) -> dict[str, Tensor]:
    """The state dict of a bare network (`TrainingModel.plain_state`), the digits as frequent as callers say them."""
    bias = state[_BIAS].clone()
    bias[[token for digit in SPOKEN_DIGITS for token in tokenizer.encode([digit])]] += DIGIT_PRIOR
    return {**state, _BIAS: bias}
