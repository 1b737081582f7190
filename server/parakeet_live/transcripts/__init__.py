"""Finals as files people use: plain text, SRT and WebVTT subtitles, JSON. Pure functions, no I/O."""

from parakeet_live.transcripts.document import to_json
from parakeet_live.transcripts.plain import to_text
from parakeet_live.transcripts.subtitles import Cue, cues, to_srt, to_vtt

__all__ = ["Cue", "cues", "to_json", "to_srt", "to_text", "to_vtt"]
