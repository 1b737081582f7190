"""A bundle: a directory with a manifest and everything needed to run one network.

``manifest.json`` states geometry, front end, token ids, step sizes and the files with their sha256; this module
reads, verifies and writes it. Every way a bundle can be broken is a :class:`BundleError` that says what is wrong
and what to do about it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from parakeet_models.mel import MelParameters
from parakeet_models.packages import PACKAGE_SUFFIX, CoremlPackages

MANIFEST_NAME = "manifest.json"
EMBEDDED_NAME = "tiny-en"
FORMAT_VERSION: Final = 2
"""Since 2, ONNX encoders keep keys in the layout of values. Core ML packages of format 1 are those of format 2."""

Role = Literal["encoder", "prediction", "joint", "tokenizer", "model_card"]
Runtime = Literal["onnx", "coreml"]
Precision = Literal["fp32", "fp16", "int8", "palettized"]
"""How weights are stored. ONNX arithmetic is fp32, and with int8 the encoder's matrix products run on integers; there
is no ``palettized``. Core ML arithmetic is fp16 but for fp32; int8 and palettized are eight-bit encoder weights."""
WeightsOrigin = Literal["trained", "random"]
GRAPH_ROLES: tuple[Role, ...] = ("encoder", "prediction", "joint")
REQUIRED_ROLES: tuple[Role, ...] = (*GRAPH_ROLES, "tokenizer")


class BundleError(Exception):
    """A bundle cannot be used; the message names the reason and the remedy."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Geometry(_Strict):
    """Sizes a backend needs to allocate caches; the same names as ``network.NetworkConfig``."""

    mel_bins: int = Field(gt=0)
    d_model: int = Field(gt=0)
    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    subsampling_channels: int = Field(gt=0)
    prediction_hidden: int = Field(gt=0)
    joint_hidden: int = Field(gt=0)
    vocabulary: int = Field(gt=0)
    use_bias: bool = False
    xscaling: bool = False
    feed_forward_expansion: int = Field(default=4, gt=0)
    conv_kernel: int = Field(default=9, gt=1)
    attention_left: int = Field(default=70, gt=0)
    attention_right: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model {self.d_model} is not a multiple of heads {self.heads}")
        if self.attention_left % (self.attention_right + 1):
            raise ValueError("attention_left is not a multiple of attention_right + 1")
        return self

    @property
    def attention_chunk(self) -> int:
        """Encoder frames per attention chunk; every step is a multiple of it."""
        return self.attention_right + 1

    @property
    def head_size(self) -> int:
        return self.d_model // self.heads

    @property
    def stage_widths(self) -> tuple[int, int]:
        """Frequency positions after the first two subsampling stages, which the caches hold."""
        first = self.mel_bins // 2 + 1
        return first, first // 2 + 1


class TokenIds(_Strict):
    """Special ids of the vocabulary; ``eob`` (end of a backchannel) may be absent."""

    eou: int = Field(ge=0)
    eob: int | None = Field(default=None, ge=0)
    blank: int = Field(ge=0)
    unknown: int | None = Field(default=0, ge=0)


class BundleFile(_Strict):
    """One file of the bundle: its path relative to the manifest, role, size and content hash."""

    role: Role
    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Parity(_Strict):
    """How far the bundle is from the PyTorch network it was made of, measured when it was written."""

    max_difference: float = Field(ge=0)
    """Largest difference in any encoder output, same inputs; relative to the output's peak where that is above one."""
    relative_difference: float = Field(ge=0)
    """Root mean square difference of the encoded frames, relative to their standard deviation over time."""
    steps: int = Field(gt=0)
    audio: str
    """What the tokens were compared on."""
    tokens: int = Field(ge=0)
    """Tokens that PyTorch emits on it, offline."""
    token_agreement: float = Field(ge=0, le=1)
    """Share of tokens that both emit on the same encoder frame, PyTorch offline and the bundle in live steps."""


class ModelInfo(_Strict):
    """What sessions and engines must know of a model, whatever it is stored as."""

    name: str = Field(min_length=1)
    description: str = ""
    languages: tuple[str, ...] = Field(min_length=1)
    licence: str
    source: str
    weights_origin: WeightsOrigin = "trained"
    """``random``: for benchmarks only, the words are noise."""
    mel: MelParameters
    tokens: TokenIds
    step_sizes: tuple[int, ...] = Field(min_length=1)
    """Encoder frames per step that the graph was checked with, smallest first; the smallest is the live step."""


class Manifest(ModelInfo):
    """What ``manifest.json`` holds."""

    format: Literal[1, 2] = FORMAT_VERSION
    runtime: Runtime = "onnx"
    weights: Precision = "fp32"
    parity: Parity | None = None
    geometry: Geometry
    coreml: CoremlPackages | None = None
    """With the runtime ``coreml``: the packages."""
    files: tuple[BundleFile, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mel.bins != self.geometry.mel_bins:
            raise ValueError(
                f"mel.bins {self.mel.bins} and geometry.mel_bins {self.geometry.mel_bins} differ"
            )
        if self.tokens.blank != self.geometry.vocabulary:
            raise ValueError(
                f"tokens.blank {self.tokens.blank} must be geometry.vocabulary {self.geometry.vocabulary}"
            )
        for name in ("eou", "eob", "unknown"):
            value = getattr(self.tokens, name)
            if value is not None and value >= self.geometry.vocabulary:
                raise ValueError(f"tokens.{name} {value} is outside the vocabulary")
        if list(self.step_sizes) != sorted(set(self.step_sizes)):
            raise ValueError("step_sizes must be ascending and distinct")
        for size in self.step_sizes:
            if size < 1 or size % self.geometry.attention_chunk:
                raise ValueError(
                    f"step size {size} breaks the attention chunks: "
                    f"use multiples of {self.geometry.attention_chunk} encoder frames"
                )
        if self.runtime == "onnx" and self.weights == "palettized":
            raise ValueError("palettized weights are for the runtime coreml")
        packaged = self._check_packages()
        roles = [file.role for file in self.files]
        for role in REQUIRED_ROLES:
            if role not in packaged and roles.count(role) != 1:
                raise ValueError(f"exactly one file with role {role!r} is needed, found {roles.count(role)}")
        return self

    def _check_packages(self) -> tuple[Role, ...]:
        """The packages are those that the files lie in. Returns the roles that packages have."""
        if (self.coreml is not None) != (self.runtime == "coreml"):
            raise ValueError("runtime coreml and the field coreml need each other")
        if self.coreml is None:
            return ()
        if [function.frames for function in self.coreml.encoder] != list(self.step_sizes):
            raise ValueError("coreml.encoder needs one function for each of step_sizes, in their order")
        for role in GRAPH_ROLES:
            named = self.coreml.of_role(role)
            found = {file.path.partition("/")[0] for file in self.files if file.role == role}
            if found != named or not all(name.endswith(PACKAGE_SUFFIX) for name in named):
                raise ValueError(
                    f"files with role {role!r} must lie in {', '.join(sorted(named))} (folders {PACKAGE_SUFFIX})"
                )
        return GRAPH_ROLES


@dataclass(frozen=True, slots=True)
class Bundle:
    """A verified bundle on disk."""

    directory: Path
    manifest: Manifest

    @property
    def bytes(self) -> int:
        """Size of all its files together."""
        return sum(file.bytes for file in self.manifest.files)

    def path(self, role: Role) -> Path:
        """Path of the file with this role; of a package's role, see ``manifest.coreml``."""
        for file in self.manifest.files:
            if file.role == role:
                return self.directory / file.path
        raise BundleError(f"{self.directory}: no file with role {role!r} in the manifest")

    @property
    def packages(self) -> CoremlPackages:
        """What a Core ML bundle consists of; BundleError for other runtimes."""
        if self.manifest.coreml is None:
            raise BundleError(
                f"{self.directory}: a bundle for {self.manifest.runtime} has no Core ML packages"
            )
        return self.manifest.coreml


def load_bundle(directory: Path, *, any_format: bool = False) -> Bundle:
    """Read and verify a bundle: manifest fields, presence, size and sha256 of every file.

    ``any_format`` lets graphs pass that this version can convert, but not run.

    Raises:
        BundleError: with the reason and the remedy.
    """
    directory = Path(directory)
    manifest = read_manifest(directory, any_format=any_format)
    for file in manifest.files:
        _verify_file(directory, file)
    return Bundle(directory, manifest)


def read_manifest(directory: Path, *, any_format: bool = False) -> Manifest:
    """The manifest of a bundle, without a look at its files; ``any_format`` as in :func:`load_bundle`.

    Raises:
        BundleError: with the reason and the remedy.
    """
    path = directory / MANIFEST_NAME
    if not directory.is_dir():
        raise BundleError(f"{directory}: no such directory; give the directory that holds {MANIFEST_NAME}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BundleError(f"{directory}: no {MANIFEST_NAME}; this is not a bundle directory") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{path}: cannot be read ({error}); copy the bundle again") from error
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'manifest'}: {e['msg']}" for e in error.errors()
        )
        raise BundleError(f"{path}: not a valid manifest of format {FORMAT_VERSION}: {problems}") from None
    if manifest.runtime == "onnx" and manifest.format < FORMAT_VERSION and not any_format:
        unfolds = manifest.weights in ("fp32", "fp16")
        source = f"{directory} or the checkpoint" if unfolds else "the checkpoint"
        raise BundleError(
            f"{directory}: its graphs are of format {manifest.format}, this version runs format {FORMAT_VERSION}; "
            f"convert {source} again: "
            f"parakeet-live models convert SOURCE --precision {manifest.weights} --out NEW_DIR"
        )
    return manifest


def embedded_bundle() -> Bundle:
    """The small model that ships with the project."""
    return load_bundle(Path(str(files("parakeet_models") / "embedded" / EMBEDDED_NAME)))


def describe_file(directory: Path, name: str, role: Role) -> BundleFile:
    """The manifest entry of a file that lies in ``directory``."""
    path = directory / name
    return BundleFile(role=role, path=name, bytes=path.stat().st_size, sha256=_sha256(path))


def describe_package(directory: Path, name: str, role: Role) -> list[BundleFile]:
    """The manifest entries of all files of a package that lies in ``directory``."""
    files = sorted(path for path in (directory / name).rglob("*") if path.is_file())
    return [describe_file(directory, path.relative_to(directory).as_posix(), role) for path in files]


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write ``manifest.json``; the inverse of what :func:`load_bundle` reads."""
    # Versions before Core ML read the manifests of ONNX bundles, but no field that they do not know.
    unused = {"coreml"} if manifest.coreml is None else None
    text = manifest.model_dump_json(indent=2, exclude=unused) + "\n"
    (directory / MANIFEST_NAME).write_text(text, encoding="utf-8")


def encoder_inputs(layers: int) -> list[str]:
    """Input names of the encoder graph, in order; see ``network.streaming.StreamingEncoder.forward``."""
    fixed = ["mel", "begin", "end", "position", "valid", "stage1", "stage2"]
    return fixed + [f"{cache}_{layer}" for cache in ("key", "value", "conv") for layer in range(layers)]


def encoder_outputs(layers: int) -> list[str]:
    """Output names of the encoder graph, in order."""
    fixed = ["encoded", "new_stage1", "new_stage2", "new_rows"]
    return fixed + [f"new_conv_{layer}" for layer in range(layers)]


def _verify_file(directory: Path, file: BundleFile) -> None:
    path = (directory / file.path).resolve()
    if not path.is_relative_to(directory.resolve()):
        raise BundleError(f"{directory}: {file.path!r} lies outside the bundle; do not use this manifest")
    if not path.is_file():
        raise BundleError(f"{directory}: {file.path} is missing; copy the bundle again")
    size = path.stat().st_size
    if size != file.bytes:
        raise BundleError(
            f"{path}: {size} bytes where the manifest says {file.bytes}; the copy is incomplete, copy it again"
        )
    if _sha256(path) != file.sha256:
        raise BundleError(f"{path}: sha256 differs from the manifest; the file is damaged or was changed")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
