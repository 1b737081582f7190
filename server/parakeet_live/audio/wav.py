"""Incremental WAV reader: any cut of a RIFF/WAVE byte stream in, the bytes of its ``data`` chunk out."""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import TypeVar

from parakeet_live.audio.formats import (
    FFMPEG_REMEDY,
    MAX_CHANNELS,
    MAX_RATE,
    MIN_RATE,
    AudioError,
    AudioFormat,
    AudioProblem,
    Encoding,
)

UNKNOWN_SIZES = (0, 0xFFFFFFFF)
"""Sizes that writers to a pipe leave in the header: the data goes on until the stream ends."""
MAX_CHUNK_BYTES = 16 * 1024 * 1024
"""A larger chunk before ``data`` is taken for a broken header: skipping it would swallow speech unnoticed."""

_EXTENSIBLE = 0xFFFE
_EXTENSIBLE_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_ENCODINGS = {
    (1, 16): Encoding.PCM_S16LE,
    (3, 32): Encoding.PCM_F32LE,
    (6, 8): Encoding.ALAW,
    (7, 8): Encoding.MULAW,
}
_FMT_BYTES = 40
"""Length of the longest ``fmt `` chunk that is understood (WAVE_FORMAT_EXTENSIBLE)."""
_DS64_BYTES = 16
"""The part of an RF64 file's ``ds64`` chunk that holds the 64-bit sizes of the file and of its data."""

_Result = TypeVar("_Result")
_Parser = Generator[None, None, _Result]
"""A parser that pauses (yields) where the bytes received so far end."""


def _unsupported(what: str) -> AudioError:
    return AudioError(
        AudioProblem.UNSUPPORTED_WAV,
        f"WAV header: {what}. Supported: 16-bit PCM, 32-bit float, mu-law, A-law; {FFMPEG_REMEDY}",
    )


def parse_fmt(body: bytes) -> AudioFormat:
    """The ``fmt `` chunk (16, 18 or 40 bytes) as a format we decode, or an :class:`AudioError`."""
    if len(body) < 16:
        raise _unsupported(f"its 'fmt ' chunk has {len(body)} bytes instead of 16 or more")
    tag, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", body)
    if tag == _EXTENSIBLE and len(body) >= _FMT_BYTES and body[26:40] == _EXTENSIBLE_GUID_TAIL:
        (tag,) = struct.unpack_from("<H", body, 24)
    encoding = _ENCODINGS.get((tag, bits))
    if encoding is None:
        raise _unsupported(f"codec {tag:#06x} with {bits} bits a sample")
    if not 1 <= channels <= MAX_CHANNELS:
        raise _unsupported(f"{channels} channels, 1 to {MAX_CHANNELS} are possible")
    if not MIN_RATE <= rate <= MAX_RATE:
        raise _unsupported(f"{rate} Hz, {MIN_RATE} to {MAX_RATE} are possible")
    audio = AudioFormat(encoding, rate, channels)
    if block != audio.bytes_per_frame:
        raise _unsupported(f"block size {block} where {audio} has {audio.bytes_per_frame}")
    return audio


class WavReader:
    """Walks the chunks of a WAV stream; several WAV files one after the other are one stream.

    The parser is a generator that pauses wherever the bytes received so far end, so that the code below reads
    like a parser of a whole file. Only the ``fmt `` and ``ds64`` chunks are held, however long others are.
    """

    def __init__(self) -> None:
        self.format: AudioFormat | None = None
        """Known once the ``fmt `` chunk has been read."""
        self.surplus = False
        """True when bytes after the audio were neither a chunk nor padding; they are dropped."""
        self._buffer = bytearray()
        self._audio: list[bytes] = []
        self._parser = self._parse()

    def feed(self, data: bytes) -> bytes:
        """Any piece of the stream in, the audio bytes it contains out."""
        self._buffer += data
        self._audio.clear()
        next(self._parser)
        return b"".join(self._audio)

    def _parse(self) -> _Parser[None]:
        yield from self._take(12)  # "RIFF", size, "WAVE": the caller has recognised them
        while True:
            yield from self._header_and_audio()
            if not (yield from self._next_file()):
                break
        while True:
            self._buffer.clear()
            yield

    def _header_and_audio(self) -> _Parser[None]:
        """From the first chunk to the end of the ``data`` chunk."""
        found: AudioFormat | None = None
        long_size = 0xFFFFFFFF
        while True:
            name, size = yield from self._chunk_header()
            if name == b"data":
                break
            if size > MAX_CHUNK_BYTES:
                raise _unsupported(f"chunk {name!r} claims {size} bytes before the audio")
            held = min(size, {b"fmt ": _FMT_BYTES, b"ds64": _DS64_BYTES}.get(name, 0))
            body = yield from self._take(held)
            yield from self._skip(size - held)
            yield from self._skip_padding(size)
            if name == b"fmt ":
                found = self._agree(parse_fmt(body))
            elif name == b"ds64" and held == _DS64_BYTES:
                long_size = int.from_bytes(body[8:16], "little")
        if found is None:
            raise _unsupported("no 'fmt ' chunk before the audio")
        if size == 0xFFFFFFFF:
            size = long_size
        yield from self._pass_on(None if size in UNKNOWN_SIZES else size)
        yield from self._skip_padding(size)

    def _next_file(self) -> _Parser[bool]:
        """Skip what follows the audio. True at the start of a further WAV file, False if nothing can follow.

        So a client that wraps every recording in its own WAV file and sends them in turn loses nothing.
        """
        while True:
            name, size = yield from self._chunk_header()
            if name in (b"RIFF", b"RF64"):
                yield from self._take(4)
                return True
            if not all(0x20 <= byte < 0x7F for byte in name):
                self.surplus = any(name)
                return False
            yield from self._skip(size)
            yield from self._skip_padding(size)

    def _agree(self, found: AudioFormat) -> AudioFormat:
        if self.format is not None and found != self.format:
            raise AudioError(
                AudioProblem.FORMAT_MISMATCH,
                f"a second WAV header says {found}, the first said {self.format}: "
                "use one connection per format",
            )
        self.format = found
        return found

    def _chunk_header(self) -> _Parser[tuple[bytes, int]]:
        header = yield from self._take(8)
        return header[:4], int.from_bytes(header[4:], "little")

    def _take(self, count: int) -> _Parser[bytes]:
        while len(self._buffer) < count:
            yield
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _skip(self, count: int) -> _Parser[None]:
        while count:
            while not self._buffer:
                yield
            step = min(count, len(self._buffer))
            del self._buffer[:step]
            count -= step

    def _skip_padding(self, size: int) -> _Parser[None]:
        """Chunks are padded to an even length with a zero byte; writers that forget it are forgiven."""
        if size % 2:
            while not self._buffer:
                yield
            if self._buffer[0] == 0:
                del self._buffer[0]

    def _pass_on(self, count: int | None) -> _Parser[None]:
        while count is None or count > 0:
            while not self._buffer:
                yield
            step = len(self._buffer) if count is None else min(count, len(self._buffer))
            self._audio.append(bytes(self._buffer[:step]))
            del self._buffer[:step]
            if count is not None:
                count -= step
