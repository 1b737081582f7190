"""The recording that ``parakeet-live demo`` streams: real speech, under its own licence (``NOTICE.txt``)."""

from pathlib import Path

RECORDING = Path(__file__).with_name("recording.wav")
"""8 kHz mono WAV: four digit strings by two speakers, each followed by a pause."""

SPOKEN = ("five zero five", "seven five nine", "one nine eight two", "seven five five one")
"""What is said in it, one string an utterance."""
