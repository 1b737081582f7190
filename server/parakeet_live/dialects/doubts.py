"""What a client is told when its audio does not look like what it declared."""

from __future__ import annotations

from parakeet_live.audio.suspicion import Suspicion
from parakeet_live.dialects.messages import ServerWarning, WarningCode

_REMEDIES = {
    Suspicion.FLOAT: "the samples look like 32-bit floating point, but are read as 16-bit integers: connect with "
    "encoding=pcm_f32le, or convert them",
    Suspicion.INT16: "the samples are no floating-point audio: if they are 16-bit integers, connect with "
    "encoding=pcm_s16le",
    Suspicion.BIG_ENDIAN: "the two bytes of every sample seem to be swapped (network byte order): send little-endian "
    "samples",
    Suspicion.STEREO: "the samples look like two interleaved channels, but are read as one: connect with channels=2",
    Suspicion.NOISE: "the audio looks like noise: check encoding and byte order. If it is noise, all is well",
}


def suspicion_warning(suspicion: Suspicion) -> str:
    """The warning about a suspicion, as a message."""
    return _warning(WarningCode(suspicion.value), _REMEDIES[suspicion])


def pace_warning(declared_rate: int, probable_rate: int) -> str:
    """The warning that audio comes at the pace of another sample rate, in Hz."""
    fast = probable_rate > declared_rate
    pace = f"{probable_rate / declared_rate:.2f} s of audio arrive in a second"
    purpose = "upload a recording at this pace" if fast else "leave audio out"
    message = (
        f"{pace}, as {probable_rate} Hz samples read as {declared_rate} Hz would: connect with "
        f"sample_rate={probable_rate}. If you {purpose} on purpose, all is well"
    )
    code = WarningCode.AUDIO_OUTRUNS_CLOCK if fast else WarningCode.AUDIO_LAGS_CLOCK
    return _warning(code, message, declared_hz=declared_rate, probable_hz=probable_rate)


def _warning(code: WarningCode, message: str, **details: int) -> str:
    return ServerWarning(code=code, message=message, details=details).model_dump_json()
