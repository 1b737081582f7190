"""The recording that ``parakeet-live demo`` streams: real speech, under its own licence (``NOTICE.txt``)."""

from pathlib import Path

RECORDING = Path(__file__).with_name("recording.wav")
"""8 kHz mono WAV: four digit strings by two speakers, each followed by a pause."""

SPOKEN = ("five zero five", "three one eight", "one nine eight two", "two two seven nine")
"""What is said in it, one string an utterance."""
