"""Eight-bit weights: stored small, computed with in fp16."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parakeet_models.bundle import Precision
from parakeet_models.export.coreml.toolkit import optimize, quiet

SMALLEST_WEIGHT = 2048
"""Elements; what is smaller (biases, normalisation) stays fp16: it would save nothing and cost accuracy."""
PALETTE = 256
"""Values in a tensor's palette: what eight bits can index."""
PALETTE_BINS = 64
"""Resolution of the density from which the search for a palette starts; finer bins are empty in the tails."""
PALETTE_ROUNDS = 30
"""Rounds of k-means; the error hardly moves after twenty."""


def compress(model: Any, precision: Precision) -> Any:
    """``int8``: linear and symmetric, one scale for each output channel. ``palettized``: 256 values for each tensor."""
    with quiet():
        if precision == "int8":
            linear = optimize.OpLinearQuantizerConfig(
                mode="linear_symmetric", dtype="int8", weight_threshold=SMALLEST_WEIGHT
            )
            return optimize.linear_quantize_weights(model, optimize.OptimizationConfig(global_config=linear))
        if precision == "palettized":
            custom = optimize.OpPalettizerConfig(
                mode="custom", lut_function=palette, weight_threshold=SMALLEST_WEIGHT
            )
            return optimize.palettize_weights(model, optimize.OptimizationConfig(global_config=custom))
    return model


def palette(weight: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], NDArray[np.uint8]]:
    """k-means in one dimension: the palette, ascending, and every element's index into it, flat.

    Works on the distinct values and their counts, of which fp16 has at most 65 536 however large the tensor, so a
    matrix takes milliseconds where a general k-means takes minutes.
    """
    values, inverse, counts = np.unique(weight, return_inverse=True, return_counts=True)
    points = values.astype(np.float64)
    if len(points) <= PALETTE:
        table = np.pad(values, (0, PALETTE - len(values)), mode="edge")
        return table, inverse.reshape(-1).astype(np.uint8)
    # The best quantiser of a density has its values as close together as the cube root of the density demands
    # (Panter and Dite, 1951). Starting there, the rounds of k-means only polish.
    density, edges = np.histogram(points, PALETTE_BINS, weights=counts)
    closeness = np.concatenate([[0.0], np.cumsum(np.cbrt(density))])
    centres = np.unique(np.interp((np.arange(PALETTE) + 0.5) / PALETTE, closeness / closeness[-1], edges))
    sums = [np.concatenate([[0.0], np.cumsum(counts * points**power)]) for power in range(3)]
    for _ in range(PALETTE_ROUNDS):
        cuts = np.searchsorted(points, (centres[1:] + centres[:-1]) / 2)
        mass, first, second = (np.diff(total[[0, *cuts, -1]]) for total in sums)
        used = mass > 0
        centres = first[used] / mass[used]
        # Values that serve no weight are better spent on halving the clusters with the largest error.
        spread = np.sqrt(np.maximum(second[used] / mass[used] - centres**2, 0.0))
        worst = np.argsort(-mass[used] * spread**2)[: PALETTE - len(centres)]
        halves = [centres[worst] - spread[worst], centres[worst] + spread[worst]]
        centres = np.unique(np.concatenate([np.delete(centres, worst), *halves]))
    table = np.pad(centres, (0, PALETTE - len(centres)), mode="edge")
    nearest = np.searchsorted((centres[1:] + centres[:-1]) / 2, points)
    return table.astype(weight.dtype), nearest[inverse.reshape(-1)].astype(np.uint8)
