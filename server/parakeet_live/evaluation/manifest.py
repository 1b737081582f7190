"""The list of recordings to evaluate: ``manifest.jsonl``, one JSON object a line, audio paths beside it."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ManifestError(Exception):
    """The manifest cannot be used; the message says where and what to do."""


class Clip(BaseModel):
    """One recording with its text."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    audio: Path
    """Audio file; after reading the manifest an absolute path or one relative to the working directory."""
    text: str
    duration: float | None = Field(default=None, ge=0)
    """Seconds."""
    speaker: str = "unknown"
    kind: str = "unknown"


def read_manifest(path: Path) -> list[Clip]:
    """All clips of ``path``; every audio file is known to exist."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise ManifestError(f"no such manifest: {path}") from error
    except IsADirectoryError as error:
        raise ManifestError(f"{path} is a directory: name the manifest file in it") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot read the manifest {path}: {error}") from error
    clips = [
        _clip(line, path, number) for number, line in enumerate(lines, start=1) if line and not line.isspace()
    ]
    if not clips:
        raise ManifestError(f"{path} lists no recordings: one JSON object a line is expected")
    return clips


def _clip(line: str, path: Path, number: int) -> Clip:
    try:
        clip = Clip.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        problem = f"field {field!r}: {first['msg']}" if field else first["msg"]
        raise ManifestError(
            f"{path}, line {number}: {problem} (each line is a JSON object with id, audio, text, "
            "and optionally duration, speaker, kind)"
        ) from error
    audio = path.parent / clip.audio
    if not audio.is_file():
        raise ManifestError(
            f"{path}, line {number}: no audio file {audio} (paths are relative to the manifest)"
        )
    return clip.model_copy(update={"audio": audio})
