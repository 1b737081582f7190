"""SRT and WebVTT subtitles made from the words of finals.

An utterance can be longer than anyone can read at once, so it is cut into cues at word borders: at most two
lines of 42 characters, seven seconds, and never across a pause of more than a second. A single word is never
cut, however long it is or lasts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parakeet_live.session.events import Final, Word

LINE_CHARACTERS = 42
"""Width that common subtitle guides allow."""
CUE_LINES = 2
CUE_MS = 7000
"""Longest time one cue stays."""
PAUSE_MS = 1000
"""A pause between words longer than this starts a new cue."""
SHORTEST_CUE_MS = 500
"""A cue shorter than this flashes by unread; it is held longer where the next cue leaves room."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A subtitle: begin and end in audio time, and its lines."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]


def cues(finals: Iterable[Final]) -> list[Cue]:
    """Cues in the order of time; they never overlap and each lasts at least a millisecond."""
    groups = [group for final in finals for group in _split(final.words)]
    result: list[Cue] = []
    for index, group in enumerate(groups):
        start = max(group[0].start_ms, result[-1].end_ms if result else 0)
        end = max(group[-1].end_ms, start + SHORTEST_CUE_MS)
        if index + 1 < len(groups):
            end = min(end, groups[index + 1][0].start_ms)
        result.append(Cue(start, max(end, start + 1), tuple(_wrap(group))))
    return result


def to_srt(finals: Iterable[Final]) -> str:
    """SubRip: numbered cues, a comma before the milliseconds."""
    blocks = [
        f"{number}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n" + "\n".join(cue.lines) + "\n"
        for number, cue in enumerate(cues(finals), start=1)
    ]
    return "\n".join(blocks)


def to_vtt(finals: Iterable[Final]) -> str:
    """WebVTT: a header, a full stop before the milliseconds, and escaped text."""
    blocks = [
        f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n"
        + "\n".join(_escape(line) for line in cue.lines)
        + "\n"
        for cue in cues(finals)
    ]
    return "\n".join(["WEBVTT\n", *blocks])


def _split(words: Sequence[Word]) -> list[list[Word]]:
    """The words of one utterance in groups that each fit one cue."""
    groups: list[list[Word]] = []
    for word in words:
        if groups and _fits(groups[-1], word):
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def _fits(group: list[Word], word: Word) -> bool:
    if word.start_ms - group[-1].end_ms > PAUSE_MS or word.end_ms - group[0].start_ms > CUE_MS:
        return False
    return len(_wrap([*group, word])) <= CUE_LINES


def _wrap(group: Sequence[Word]) -> list[str]:
    # A word longer than a line is kept whole: a split word is harder to read than a long line.
    return textwrap.wrap(
        " ".join(word.text for word in group),
        LINE_CHARACTERS,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _clock(milliseconds: int, point: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{point}{rest:03d}"


def _escape(line: str) -> str:
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
