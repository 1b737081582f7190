"""Builds WAV files by hand, also those that no writer would make."""

from __future__ import annotations

import struct

GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def fmt_body(
    tag: int = 1, channels: int = 1, rate: int = 16_000, bits: int = 16, *, extensible: bool = False
) -> bytes:
    """The body of a ``fmt `` chunk: 16 bytes, or 40 as WAVE_FORMAT_EXTENSIBLE."""
    block = channels * bits // 8
    body = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate, rate * block, block, bits)
    if not extensible:
        return body
    return body + struct.pack("<HHIH", 22, bits, 0, tag) + GUID_TAIL


def chunk(name: bytes, body: bytes) -> bytes:
    """A RIFF chunk with its padding."""
    return name + struct.pack("<I", len(body)) + body + b"\x00" * (len(body) % 2)


def riff(*chunks: bytes) -> bytes:
    """A RIFF/WAVE file of these chunks."""
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def wav_file(audio: bytes, tag: int = 1, channels: int = 1, rate: int = 16_000, bits: int = 16) -> bytes:
    """A plain WAV file."""
    return riff(chunk(b"fmt ", fmt_body(tag, channels, rate, bits)), chunk(b"data", audio))
