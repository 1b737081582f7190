"""A decoder of random weights that behaves like a trained one: a token now and then, an end every few seconds.

Left to chance, a random transducer stays silent or emits the most symbols it may on every frame. So a few hidden
units are wired by hand, and only *which* token of a class comes out is left to chance:

* The pieces fall into CLASSES classes (id modulo CLASSES) and the encoder frame gives each class a score, a random
  projection of the frame.
* The prediction network remembers the class of the last token. The blank's logit is that class's score plus a
  margin: a token is emitted when the sound moves so far that another class leads by the margin, and the token's own
  class then becomes the blank's, so one change of the sound yields one token, as in a trained transducer.
* The prediction network counts the tokens since the start of sequence; ``<EOU>`` wins at a fixed count.

The margin is found by bisection on what greedy decoding emits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parakeet_models.network import ParakeetNetwork, greedy_decode
from parakeet_models.network.rnnt import Joint, PredictionNetwork

CLASSES = 8
CLASS_SPREAD = 10.0
"""Standard deviation of a class's score, in logits."""
TOKEN_SPREAD = 2.0
"""Standard deviation of what chance adds to a token's logit."""
LIMIT = 80.0
"""More than any class score: shifts scores into the linear part of the ReLU, or out of it to switch a unit off."""
OPEN, CLOSED = 12.0, -12.0
"""Gate biases that hold a gate of the LSTM open (1) or closed (0)."""
FRAMES_PER_SECOND = 12.5
SEARCH_STEPS = 10


@dataclass(frozen=True, slots=True)
class EmissionRate:
    """What a random network emits on the speech it is calibrated on; other speech gives half to twice as much."""

    tokens_per_second: float = 4.0
    tokens_per_end: int = 16
    """Tokens from one end of utterance to the next, the end itself included."""

    def __post_init__(self) -> None:
        if not 0.1 <= self.tokens_per_second <= 10.0:
            raise ValueError(f"{self.tokens_per_second} tokens per second; choose from 0.1 to 10")
        if self.tokens_per_end < 2:
            raise ValueError(f"{self.tokens_per_end} tokens per end of utterance; choose at least 2")


def standardise(linear: nn.Linear, outputs: Tensor, spread: float = 1.0) -> None:
    """Rescale a linear layer that gave ``outputs`` [n, features]: each gets mean 0 and this standard deviation."""
    scale = spread / outputs.std(0).clamp(min=1e-6)
    linear.weight *= scale[:, None]
    linear.bias.copy_((linear.bias - outputs.mean(0)) * scale)


def wire_decoder(network: ParakeetNetwork, speech: Tensor, eou: int, rate: EmissionRate) -> None:
    """Set prediction network and joint; ``speech`` float[T, d_model] are encoder frames of speech."""
    config, joint = network.config, network.joint
    _wire_memory(network.decoder, config.blank, rate.tokens_per_end)
    texts = torch.randint(0, config.vocabulary, (64, 8))
    states = network.decoder(texts)[0].flatten(0, 1)
    standardise(joint.enc, joint.enc(speech))
    standardise(joint.pred, joint.pred(states))
    picked = torch.randint(0, len(states), (len(speech),))
    # The wired units are silenced before the rest is measured, and set after it.
    for linear in (joint.enc, joint.pred):
        linear.bias[: _wired(config.joint_hidden)] = -LIMIT
    output = joint.joint_net[2]
    standardise(output, joint.combine(joint.enc(speech), joint.pred(states[picked])), TOKEN_SPREAD)
    _wire_joint(joint, speech, config.blank, eou, rate.tokens_per_end)
    _find_margin(network, speech, eou, rate)


def _wired(hidden: int) -> int:
    """Hidden units of the joint set by hand: two for each class, one for the end."""
    count = 2 * CLASSES + 1
    if hidden < 2 * count:
        raise ValueError(f"joint_hidden {hidden} leaves too few random units; choose at least {2 * count}")
    return count


def _wire_memory(decoder: PredictionNetwork, blank: int, tokens_per_end: int) -> None:
    """LSTM units 0 .. CLASSES - 1 hold the class of the last token, unit CLASSES the count of tokens."""
    lstm, embed = decoder.lstm, decoder.embed
    hidden = lstm.hidden_size
    units = CLASSES + 1
    embed.weight[:, :units] = 0.0
    ids = torch.arange(blank)
    embed.weight[ids, ids % CLASSES] = 1.0
    embed.weight[ids, CLASSES] = 1.0
    embed.weight[blank] = 0.0
    gates = {name: index * hidden for index, name in enumerate(("input", "forget", "cell", "output"))}
    for name, start in gates.items():
        rows = slice(start, start + units)
        for weight in (lstm.weight_ih_l0, lstm.weight_hh_l0):
            weight[rows] = 0.0
        lstm.bias_hh_l0[rows] = 0.0
        lstm.bias_ih_l0[rows] = 0.0 if name == "cell" else OPEN
    cell = gates["cell"]
    lstm.bias_ih_l0[gates["forget"] : gates["forget"] + CLASSES] = CLOSED
    for index in range(CLASSES):
        lstm.weight_ih_l0[cell + index, index] = OPEN
    # The count stays in the steep part of the output's tanh.
    lstm.weight_ih_l0[cell + CLASSES, CLASSES] = 1.0 / tokens_per_end


def _wire_joint(joint: Joint, speech: Tensor, blank: int, eou: int, tokens_per_end: int) -> None:
    """Hidden units: CLASSES scores, CLASSES scores that only the last token's class lets through, and the end."""
    output = joint.joint_net[2]
    score = slice(0, CLASSES)
    memory = slice(CLASSES, 2 * CLASSES)
    end = 2 * CLASSES
    wired = slice(0, end + 1)
    joint.pred.weight[wired] = 0.0
    joint.pred.bias[wired] = 0.0
    output.weight[:, wired] = 0.0

    projection = torch.randn(CLASSES, speech.shape[1])
    scores = speech @ projection.T
    gain = CLASS_SPREAD / scores.std(0)
    weight, bias = projection * gain[:, None], -scores.mean(0) * gain
    for rows in (score, memory):
        joint.enc.weight[rows] = weight
    joint.enc.bias[score] = bias + LIMIT
    joint.enc.bias[memory] = bias - LIMIT
    # What an LSTM unit with open gates shows of a cell value of one.
    joint.pred.weight[memory, :CLASSES] = torch.eye(CLASSES) * (2.0 * LIMIT / math.tanh(1.0))
    pieces = torch.arange(1, eou)
    output.weight[pieces, pieces % CLASSES] = 1.0
    # Never: <unk>, and <EOB>, which comes after <EOU>.
    output.bias[:blank] -= LIMIT
    output.weight[blank] = 0.0
    output.weight[blank, memory] = 1.0
    output.bias[blank] = -LIMIT

    before, due = (math.tanh(1.0 - tokens / tokens_per_end) for tokens in (2, 1))
    steepness = 8.0 * LIMIT / (due - before)
    joint.enc.weight[end] = 0.0
    joint.enc.bias[end] = 0.0
    joint.pred.weight[end, CLASSES] = steepness
    joint.pred.bias[end] = -steepness * (due + before) / 2
    output.weight[eou, end] = 1.0


def _find_margin(network: ParakeetNetwork, speech: Tensor, eou: int, rate: EmissionRate) -> None:
    """Raise the blank's bias until ``speech`` yields the wanted number of tokens."""
    bias, blank = network.joint.joint_net[2].bias, network.config.blank
    wanted = rate.tokens_per_second * len(speech) / FRAMES_PER_SECOND
    low = float(bias[blank])
    high = low + LIMIT
    for _ in range(SEARCH_STEPS):
        middle = (low + high) / 2
        bias[blank] = middle
        few = len(greedy_decode(network, speech, reset_on=frozenset({eou}))) < wanted
        low, high = (low, middle) if few else (middle, high)
