"""The sounds of words: a second target of the warm start.

With one class per word a network has to learn 600 words one by one. Which of 40 sounds are heard at the moment is the
same question for all of them, so an auxiliary head answers that too while the frame-level loss is in use. The head is
not part of the result.

The pronunciations are those of hibari (`synthesis.word_phonemes`), made once and kept in a JSON file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .synthesis import EngineMissingError, make_engine, word_phonemes

if TYPE_CHECKING:
    from .streams import Utterance

SOUNDS = "əɹntsldɪkiɛpmzAæfɑIbvŋɔOʌwuʃɡʤjhɜʧθWʊðYʒ"
"""One symbol each; capitals are the English diphthongs and long vowels, as in `accents`."""

_SAME = {"T": "t", "ɐ": "ə", "ᵊ": "ə", "ᵻ": "ə"}
_LETTER_A = "ay"


def make_sounds(words: Iterable[str], path: Path) -> None:
    """Write the pronunciations of words, `{word: symbols}`, unless the file is there; an empty one without hibari."""
    if path.exists():
        return
    try:
        voice = make_engine("hibari", path.parent)
    except EngineMissingError:
        path.write_text("{}")
        return
    g2p = voice._voice  # type: ignore[attr-defined]
    said = {}
    for word in sorted(set(words)):
        symbols = "".join(word_phonemes(g2p, _LETTER_A if word == "a" else word))
        said[word] = "".join(_SAME.get(s, s) for s in symbols if _SAME.get(s, s) in SOUNDS)
    path.write_text(json.dumps(said, ensure_ascii=False))


class SoundTable:
    """Word → its sounds, as indices into `SOUNDS`; words it does not know have none."""

    def __init__(self, pronunciations: Mapping[str, str]) -> None:
        self._sounds = {
            w: [SOUNDS.index(s) for s in symbols] for w, symbols in pronunciations.items() if symbols
        }

    @classmethod
    def read(cls, path: Path) -> SoundTable:
        """From the file that `make_sounds` wrote."""
        return cls(json.loads(path.read_text()))

    def targets(self, frames: int, utterances: Iterable[Utterance], frame_s: float) -> np.ndarray:
        """float32[frames, len(SOUNDS)]: 1 where a sound is heard in the frame or in the half before it.

        Frame k ends at k * frame_s. The sounds of a word are taken to be equally long, which a vowel may outlast by
        a frame: hence the half frame.
        """
        active = np.zeros((frames, len(SOUNDS)), np.float32)
        for utterance in utterances:
            for word in utterance.words:
                sounds = self._sounds.get(word.text, [])
                length = (word.end - word.start) / max(1, len(sounds))
                for i, sound in enumerate(sounds):
                    begin, end = word.start + i * length, word.start + (i + 1) * length
                    first, last = int(begin / frame_s) + 1, int(end / frame_s + 1.5)
                    active[max(0, first) : min(frames, max(first, last) + 1), sound] = 1
        return active
