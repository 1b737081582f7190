"""soniqo's exports (``Parakeet-EOU-120M-CoreML-INT8`` and its ONNX sibling): ``pre_cache`` is looped back.

The cadence is stated in ``config.json``; its numbers are checked, because published ones have been inconsistent.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from parakeet_models.frames import SUBSAMPLING_FACTOR, subsampled_length
from parakeet_models.layouts.assemble import CONVERT, assemble
from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import DROPPED_FRAMES, Graphs, Layout, SeparateDecoder
from parakeet_models.mel import MelParameters

CONFIG = "config.json"
REMEDY = (
    "use the published Parakeet-EOU-120M-CoreML-INT8, whose config.json has melFrames 64 and outputFrames 4, "
    f"or {CONVERT}"
)


class _Camel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class Streaming(_Camel):
    """The cadence: a window of ``mel_frames`` after ``pre_cache_size``, of which ``output_frames`` are decoded."""

    mel_frames: int = Field(gt=0)
    pre_cache_size: int = Field(ge=0)
    output_frames: int = Field(gt=0)


class Config(_Camel):
    """What is read of ``config.json``; everything else follows from the graphs."""

    num_mel_bins: int = Field(gt=0)
    sample_rate: int = Field(gt=0)
    n_fft: int = Field(gt=0, alias="nFFT")
    hop_length: int = Field(gt=0)
    win_length: int = Field(gt=0)
    pre_emphasis: float = Field(ge=0, lt=1)
    subsampling_factor: int = SUBSAMPLING_FACTOR
    blank_token_id: int
    eou_token_id: int
    streaming: Streaming

    @property
    def mel(self) -> MelParameters:
        return MelParameters(
            sample_rate=self.sample_rate,
            bins=self.num_mel_bins,
            fft_length=self.n_fft,
            hop_length=self.hop_length,
            window_length=self.win_length,
            pre_emphasis=self.pre_emphasis,
        )


def recognise(graphs: Graphs) -> Layout | None:
    """A looped-back encoder, a prediction network that takes ``token`` alone, and a joint that gives logits."""
    encoder, decoder = graphs.encoder(), graphs.decoder()
    if encoder is None or encoder.ports.pre_cache is None or not isinstance(decoder, SeparateDecoder):
        return None
    if decoder.prediction.ports.count is not None or decoder.joint.ports.scores.logits is None:
        return None
    path = graphs.directory / CONFIG
    config = _read_config(path)
    streaming = config.streaming
    shapes = {"melFrames": encoder.ports.signal_frames, "preCacheSize": encoder.ports.pre_frames}
    stated = {"melFrames": streaming.mel_frames, "preCacheSize": streaming.pre_cache_size}
    for name, found in shapes.items():
        if found is not None and found != stated[name]:
            raise LayoutError(
                f"{path}: {name} is {stated[name]}, the encoder takes {found}; "
                "the files are of different exports: download all of them again"
            )
    layout = assemble(
        graphs,
        encoder,
        decoder,
        family="soniqo",
        title="soniqo's export: encoder with looped-back mel cache, prediction network, joint",
        hop=streaming.output_frames,
        vocabulary=("vocab.json",),
        remedy=REMEDY,
        mel=config.mel,
    )
    if (layout.tokens.eou, layout.tokens.blank) != (config.eou_token_id, config.blank_token_id):
        raise LayoutError(
            f"{path}: <EOU> is {config.eou_token_id} and the blank {config.blank_token_id}, by vocab.json "
            f"{layout.tokens.eou} and {layout.tokens.blank}; the files are of different exports: download them again"
        )
    return layout


def _read_config(path: Path) -> Config:
    try:
        config = Config.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LayoutError(f"{path.parent}: no {CONFIG}, which states the cadence; download it too") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LayoutError(f"{path}: cannot be read ({error}); download it again") from None
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise LayoutError(f"{path}: {problems}; download it again") from None
    streaming = config.streaming
    if config.subsampling_factor != SUBSAMPLING_FACTOR:
        raise LayoutError(
            f"{path}: subsamplingFactor {config.subsampling_factor}; this network has {SUBSAMPLING_FACTOR}. {REMEDY}"
        )
    advance = SUBSAMPLING_FACTOR * streaming.output_frames
    if advance > streaming.mel_frames:
        raise LayoutError(
            f"{path}: outputFrames {streaming.output_frames} advance by {advance} mel frames, but a window has only "
            f"{streaming.mel_frames}: audio would be skipped. {REMEDY}"
        )
    given = subsampled_length(streaming.pre_cache_size + streaming.mel_frames) - DROPPED_FRAMES
    if given < streaming.output_frames:
        raise LayoutError(
            f"{path}: a window of {streaming.pre_cache_size} + {streaming.mel_frames} mel frames gives {given} encoder "
            f"frames, fewer than outputFrames {streaming.output_frames}. {REMEDY}"
        )
    return config
