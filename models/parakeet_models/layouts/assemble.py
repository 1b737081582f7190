"""What every family's adapter ends with: checks that hold for all of them, and the layout."""

from __future__ import annotations

from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import Decoder, Family, GraphFile, Graphs, Layout, SeparateDecoder
from parakeet_models.layouts.ports import EncoderPorts, ScorePorts
from parakeet_models.layouts.vocabulary import read_pieces, token_ids, with_ends
from parakeet_models.mel import MelParameters

CONVERT = "convert the checkpoint yourself with `parakeet-live models convert`"


def scores_of(decoder: Decoder) -> ScorePorts:
    """What the graph with the joint says of a frame."""
    return decoder.joint.ports.scores if isinstance(decoder, SeparateDecoder) else decoder.ports.scores


def assemble(
    graphs: Graphs,
    encoder: GraphFile[EncoderPorts],
    decoder: Decoder,
    *,
    family: Family,
    title: str,
    hop: int,
    vocabulary: tuple[str, ...],
    remedy: str = CONVERT,
    mel: MelParameters | None = None,
) -> Layout:
    """The layout; ``vocabulary`` names the files that may hold the pieces, ``mel`` defaults to the network's own.

    Raises:
        LayoutError: parts do not fit each other, or the graph is none that can be streamed.
    """
    bins = encoder.ports.bins
    if bins is None:
        raise LayoutError(
            f"{encoder.path}: the number of mel bands is left free; export it with a fixed number, or {CONVERT}"
        )
    sizes = (*encoder.ports.channel.shape[2:], *encoder.ports.time.shape[2:])
    if None in sizes:
        raise LayoutError(
            f"{encoder.path}: the caches' sizes are left free; export it with fixed ones, or {CONVERT}"
        )
    if mel is None:
        mel = MelParameters(bins=bins)
    elif mel.bins != bins:
        raise LayoutError(
            f"{graphs.directory}: the configuration says {mel.bins} mel bands, the encoder takes {bins}; "
            "the files are of different models: download all of them again"
        )
    classes = scores_of(decoder).classes
    pieces = with_ends(read_pieces(graphs.directory, vocabulary), classes)
    if classes is not None and classes != len(pieces) + 1:
        raise LayoutError(
            f"{graphs.directory}: {len(pieces)} pieces where the joint has {classes} outputs, blank included; "
            "the vocabulary belongs to another model: download all files again"
        )
    tokens = token_ids(pieces, graphs.directory)
    return Layout(
        graphs.directory, family, title, graphs.runtime, encoder, decoder, pieces, tokens, mel, hop, remedy
    )
