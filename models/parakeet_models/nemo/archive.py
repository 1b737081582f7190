"""Safe reading of a ``.nemo`` archive: a tar, sometimes gzip'd, of a configuration, weights and a tokenizer.

Nothing is extracted to disk: the three members that matter are read into memory, in one pass, under size limits.
Everything else about the archive is only inspected, and anything that a model archive has no use for (links,
devices, absolute paths, ``..``, sparse files) means that the archive is not what it claims to be and is refused.
"""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import torch
import yaml
from torch import Tensor

from parakeet_models.nemo.errors import NemoError

CONFIG_NAME = "model_config.yaml"
WEIGHTS_NAME = "model_weights.ckpt"
TOKENIZER_SUFFIX = "tokenizer.model"

MAX_CONFIG_BYTES = 4 << 20
MAX_TOKENIZER_BYTES = 16 << 20
MAX_WEIGHTS_BYTES = 4 << 30
"""Ten times the 120M model in fp32."""
MAX_MEMBERS = 256
"""A model archive has about five."""
MAX_EXPANSION = 50
"""Bytes out of gzip for each byte in; weights hardly compress, a bomb is a thousand to one."""
MIN_EXPANDED_BYTES = 64 << 20
"""What a gzip'd archive may always expand to, however small it is."""

AGAIN = "copy or download the archive again"
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class NemoArchive:
    """What the archive holds, parsed but not yet checked."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizer: bytes
    """A SentencePiece model."""


def read_archive(path: Path) -> NemoArchive:
    """Read an archive of any origin.

    Raises:
        NemoError: it is missing, broken, oversized or unsafe, or has not the members of a SentencePiece model.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            members = _read_members(path, file)
    except FileNotFoundError:
        raise NemoError(f"{path}: no such file") from None
    except tarfile.ReadError as error:
        raise NemoError(f"{path}: not a tar archive, or cut short ({error}); {AGAIN}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NemoError(f"{path}: damaged or cut short ({error}); {AGAIN}") from None
    except OSError as error:
        raise NemoError(f"{path}: cannot be read ({error.strerror or error})") from None
    for name, purpose in ((CONFIG_NAME, "configuration"), (WEIGHTS_NAME, "weights")):
        if name not in members:
            raise NemoError(f"{path}: no {name} ({purpose}) in the archive; is this a .nemo file? {AGAIN}")
    config = _parse_config(path, members[CONFIG_NAME])
    tokenizer = _choose_tokenizer(path, config, members)
    return NemoArchive(config, _load_weights(path, members.pop(WEIGHTS_NAME)), tokenizer)


def _read_members(path: Path, file: BinaryIO) -> dict[str, bytes]:
    """The members of interest by name, in one pass over the archive."""
    compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    stream: Any = file
    if compressed:
        limit = max(MIN_EXPANDED_BYTES, MAX_EXPANSION * path.stat().st_size)
        stream = _Limited(gzip.GzipFile(fileobj=file), limit, path)
    members: dict[str, bytes] = {}
    # Stream mode reads every byte once and never seeks, so the limit above sees all that gzip puts out.
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for count, member in enumerate(tar, start=1):
            if count > MAX_MEMBERS:
                raise NemoError(f"{path}: more than {MAX_MEMBERS} members; this is not a model archive")
            name = _safe_name(path, member)
            limit = _limit(name)
            if not member.isreg() or limit is None:
                continue
            if name in members:
                raise NemoError(f"{path}: two members are named {name}; {AGAIN}")
            if member.size > limit:
                raise NemoError(f"{path}: {name} has {member.size} bytes, at most {limit} are accepted")
            content = tar.extractfile(member)
            assert content is not None  # None only for what is no regular file
            members[name] = content.read()
            if len(members[name]) != member.size:
                raise NemoError(f"{path}: {name} is cut short; {AGAIN}")
    return members


def _safe_name(path: Path, member: tarfile.TarInfo) -> str:
    """The member's name without ``./``; refuses what has no place in a model archive."""
    pure = PurePosixPath(member.name)
    if pure.is_absolute() or ".." in pure.parts:
        raise NemoError(f"{path}: member {member.name!r} points outside the archive; do not use this file")
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise NemoError(
            f"{path}: member {member.name!r} is a link, a device or a sparse file; do not use this file"
        )
    return str(pure)


def _limit(name: str) -> int | None:
    """Most bytes accepted of a member; None if it is of no interest."""
    if name == CONFIG_NAME:
        return MAX_CONFIG_BYTES
    if name == WEIGHTS_NAME:
        return MAX_WEIGHTS_BYTES
    return MAX_TOKENIZER_BYTES if name.endswith(TOKENIZER_SUFFIX) else None


def _parse_config(path: Path, text: bytes) -> dict[str, Any]:
    try:
        config = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        problem = str(error).replace("\n", " ")
        raise NemoError(f"{path}: {CONFIG_NAME} is not plain YAML ({problem}); {AGAIN}") from None
    if not isinstance(config, dict):
        raise NemoError(f"{path}: {CONFIG_NAME} holds no mapping; {AGAIN}")
    return config


def _choose_tokenizer(path: Path, config: dict[str, Any], members: dict[str, bytes]) -> bytes:
    """The only SentencePiece model, or of several the one that the configuration names."""
    names = [name for name in members if name.endswith(TOKENIZER_SUFFIX)]
    if len(names) > 1:
        section = config.get("tokenizer")
        wanted = str(section.get("model_path")) if isinstance(section, dict) else ""
        names = [name for name in names if wanted.removeprefix("nemo:") == name]
    if len(names) != 1:
        raise NemoError(
            f"{path}: no SentencePiece model (*{TOKENIZER_SUFFIX}) in the archive, or several; "
            "only models with a SentencePiece tokenizer can be converted"
        )
    return members[names[0]]


def _load_weights(path: Path, data: bytes) -> dict[str, Tensor]:
    """The state dict, loaded without running anything the file says."""
    where = f"{path}: {WEIGHTS_NAME}"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            expanded = sum(part.file_size for part in parts.infolist())
            if not any(name.endswith("/data.pkl") for name in parts.namelist()):
                raise ValueError("no data.pkl in it")
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise NemoError(
            f"{where} is not a checkpoint as torch.save writes it since version 1.6 ({error}); {AGAIN}"
        ) from None
    if expanded > len(data):
        raise NemoError(
            f"{where} expands from {len(data)} to {expanded} bytes; torch never compresses: {AGAIN}"
        )
    try:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).strip().splitlines()
        detail = next(
            (line.strip() for line in reason if "GLOBAL" in line or "Unsupported" in line), reason[-1]
        )
        raise NemoError(
            f"{where} holds something other than weights, perhaps code; it was not run: do not use it ({detail})"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NemoError(f"{where} is damaged ({str(error).splitlines()[0]}); {AGAIN}") from None
    if not isinstance(loaded, dict) or not loaded:
        raise NemoError(f"{where} holds no state dict; save the model with NeMo's save_to")
    for key, value in loaded.items():
        if not isinstance(key, str) or not isinstance(value, Tensor):
            raise NemoError(f"{where}: {key!r} is no tensor; save the model with NeMo's save_to")
        if value.layout != torch.strided or value.is_quantized or value.device.type != "cpu":
            raise NemoError(f"{where}: {key} is not a plain tensor; save the model with NeMo's save_to")
        # A tensor may claim a shape that a few stored bytes are repeated to fill.
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise NemoError(f"{where}: {key} claims shape {tuple(value.shape)}, which is more than it stores")
    return loaded


class _Limited:
    """A stream that refuses to give more than ``limit`` bytes."""

    def __init__(self, stream: gzip.GzipFile, limit: int, path: Path) -> None:
        self._stream, self._left, self._limit, self._path = stream, limit, limit, path

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise NemoError(
                f"{self._path}: expands to more than {self._limit} bytes, which weights never do; do not use it"
            )
        return data
