"""NeMo's preprocessor section and tensors, as parameters of our mel front end."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from parakeet_models.mel import LOG_GUARD, MelParameters, hann_window, mel_filterbank
from parakeet_models.nemo.checks import INCONSISTENT, RETRAIN, Settings, Weights, refuse

TOLERANCE = 1e-4
"""Largest difference of a window tap or a filter weight."""

WINDOW_KEY = "preprocessor.featurizer.window"
FILTERBANK_KEY = "preprocessor.featurizer.fb"


def mel_parameters(settings: Settings, weights: Weights) -> MelParameters:
    """Parameters of the front end.

    Dither and ``pad_to`` are ignored: NeMo itself switches both off at inference.

    Raises:
        NemoError: the model was trained on features that our front end does not compute.
    """
    sample_rate = _whole(settings, "preprocessor.sample_rate", 1.0)
    window = _whole(settings, "preprocessor.window_size", sample_rate)
    hop = _whole(settings, "preprocessor.window_stride", sample_rate)
    bins = _whole(settings, "preprocessor.features", 1.0)
    if (inputs := settings.need("encoder.feat_in")) != bins:
        refuse("encoder.feat_in", inputs, f"{bins}, as preprocessor.features has", INCONSISTENT)
    n_fft = settings.number("preprocessor.n_fft") or 2 ** math.ceil(math.log2(window))
    settings.supports("preprocessor.normalize", "NA", required=True)
    settings.supports("preprocessor.window", "hann")
    settings.supports("preprocessor.frame_splicing", 1)
    settings.supports("preprocessor.log", True)
    settings.supports("preprocessor.log_zero_guard_type", "add")
    settings.supports("preprocessor.mel_norm", "slaney")
    settings.supports("preprocessor.pad_mode", "constant")
    settings.supports("preprocessor.exact_pad", False)
    settings.supports("preprocessor.use_torchaudio", False)
    for key, expected in (
        ("mag_power", 2.0),
        ("lowfreq", 0.0),
        ("highfreq", sample_rate / 2),
        ("log_zero_guard_value", float(LOG_GUARD)),
    ):
        found = settings.number(f"preprocessor.{key}")
        if found is not None and not math.isclose(found, expected, rel_tol=1e-3, abs_tol=1e-12):
            refuse(f"preprocessor.{key}", found, expected, RETRAIN)
    emphasis = settings.number("preprocessor.preemph")
    parameters = MelParameters(
        sample_rate=sample_rate,
        bins=bins,
        fft_length=int(n_fft),
        hop_length=hop,
        window_length=window,
        **({} if emphasis is None else {"pre_emphasis": emphasis}),
    )
    _compare(WINDOW_KEY, weights.tensors.get(WINDOW_KEY), hann_window(window))
    _compare(FILTERBANK_KEY, weights.tensors.get(FILTERBANK_KEY), mel_filterbank(parameters).T[None])
    return parameters


def _whole(settings: Settings, key: str, factor: float) -> int:
    """``settings[key] * factor``, which must be a positive whole number (samples, bands)."""
    settings.need(key)
    value = (settings.number(key) or 0.0) * factor
    if not 1 <= value < 1e6 or abs(value - round(value)) > 1e-3:
        refuse(key, settings.get(key), "a positive whole number of samples or bands", RETRAIN)
    return round(value)


def _compare(key: str, found: Tensor | None, ours: np.ndarray) -> None:
    """Stored tables, where there are any, must be the ones we compute."""
    if found is None:
        return
    if tuple(found.shape) != ours.shape:
        refuse(key, f"shape {tuple(found.shape)}", f"shape {ours.shape}", RETRAIN)
    difference = float(np.abs(found.float().numpy() - ours).max())
    if not difference <= TOLERANCE:
        refuse(key, f"values that differ by {difference:.1e}", f"our table to {TOLERANCE:.0e}", RETRAIN)
