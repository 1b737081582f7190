"""altunenes' ONNX export (``realtime_eou_120m-v1-onnx``, for parakeet-rs): decoder and joint are one graph."""

from __future__ import annotations

from parakeet_models.layouts.assemble import assemble
from parakeet_models.layouts.layout import ATTENTION_CHUNK, GraphFile, Graphs, Layout

HOP = ATTENTION_CHUNK
"""The export's cadence is NeMo's default for this network: chunks and shifts of one attention chunk."""


def recognise(graphs: Graphs) -> Layout | None:
    """An encoder that takes whole windows, and a combined decoder that gives logits."""
    encoder, decoder = graphs.encoder(), graphs.decoder()
    if encoder is None or encoder.ports.pre_cache is not None or not isinstance(decoder, GraphFile):
        return None
    if decoder.ports.scores.logits is None:
        return None
    return assemble(
        graphs,
        encoder,
        decoder,
        family="altunenes",
        title="altunenes' export: encoder on whole windows, prediction network and joint in one graph",
        hop=HOP,
        vocabulary=("tokenizer.json", "vocab.json", "tokens.txt"),
    )
