"""The trio that sherpa-onnx loads: encoder, decoder and joiner, with the cadence in the encoder file's metadata."""

from __future__ import annotations

from parakeet_models.frames import SUBSAMPLING_FACTOR
from parakeet_models.layouts.assemble import assemble
from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import (
    ATTENTION_CHUNK,
    DROPPED_FRAMES,
    PRE_ENCODE_FRAMES,
    Graphs,
    Layout,
    SeparateDecoder,
)

WINDOW, SHIFT = "window_size", "chunk_shift"
NORMALISATION = "normalize_type"
REMEDY = "export it with NeMo's scripts for this checkpoint, or with `python -m parakeet_models.export.nemo_layout`"


def recognise(graphs: Graphs) -> Layout | None:
    """An encoder that takes whole windows, a prediction network, and a joint that gives logits."""
    encoder, decoder = graphs.encoder(), graphs.decoder()
    if encoder is None or encoder.ports.pre_cache is not None or not isinstance(decoder, SeparateDecoder):
        return None
    if decoder.joint.ports.scores.logits is None:
        return None
    metadata = graphs.metadata[encoder.path]
    default = SUBSAMPLING_FACTOR * ATTENTION_CHUNK
    try:
        shift = int(metadata.get(SHIFT, default))
        window = int(metadata.get(WINDOW, PRE_ENCODE_FRAMES + shift))
    except ValueError:
        raise LayoutError(f"{encoder.path}: {WINDOW} and {SHIFT} are not numbers; {REMEDY}") from None
    if window != PRE_ENCODE_FRAMES + shift or shift % SUBSAMPLING_FACTOR:
        raise LayoutError(
            f"{encoder.path}: {WINDOW} {window} and {SHIFT} {shift}; a window of this network repeats "
            f"{PRE_ENCODE_FRAMES} mel frames before whole encoder frames of {SUBSAMPLING_FACTOR}, of which it drops "
            f"{DROPPED_FRAMES}; {REMEDY}"
        )
    if metadata.get(NORMALISATION):
        raise LayoutError(
            f"{encoder.path}: {NORMALISATION} is {metadata[NORMALISATION]!r}; features normalised by recording "
            "cannot be streamed exactly: use a model without normalisation, such as Parakeet-EOU"
        )
    return assemble(
        graphs,
        encoder,
        decoder,
        family="sherpa",
        title="sherpa-onnx trio: encoder on whole windows, decoder, joiner",
        hop=shift // SUBSAMPLING_FACTOR,
        vocabulary=("tokens.txt",),
        remedy=REMEDY,
    )
