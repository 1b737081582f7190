"""FluidInference's export (``parakeet-realtime-eou-120m-coreml``): looped-back ``pre_cache``, a joint that decides.

Three folders hold three windows. Nothing in them states by how much the runtime advances; it is known of the published
three.
"""

from __future__ import annotations

from parakeet_models.frames import subsampled_length
from parakeet_models.layouts.assemble import CONVERT, assemble, scores_of
from parakeet_models.layouts.layout import DROPPED_FRAMES, Graphs, Layout, SeparateDecoder

HOPS = {(16, 17): 1, (9, 64): 4, (16, 129): 16}
"""Encoder frames by which the published runtime advances, by mel frames of ``pre_cache`` and of the window: the folders
160ms, 320ms and 1280ms."""
REMEDY = f"use the folder 320ms of the same repository, or {CONVERT}"


def recognise(graphs: Graphs) -> Layout | None:
    """A looped-back encoder, and a joint, alone or fused with the prediction network, that gives ``token_id``."""
    encoder, decoder = graphs.encoder(), graphs.decoder()
    if encoder is None or encoder.ports.pre_cache is None or decoder is None:
        return None
    if scores_of(decoder).token is None:
        return None
    pre, signal = encoder.ports.pre_frames, encoder.ports.signal_frames or 0
    fused = "" if isinstance(decoder, SeparateDecoder) else ", fused decoder"
    return assemble(
        graphs,
        encoder,
        decoder,
        family="fluidinference",
        title=f"FluidInference's export: encoder with looped-back mel cache, joint that decides{fused}",
        hop=HOPS.get((pre, signal), subsampled_length(pre + signal) - DROPPED_FRAMES),
        vocabulary=("vocab.json",),
        remedy=REMEDY,
    )
