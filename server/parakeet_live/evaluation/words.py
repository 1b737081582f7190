"""Word error rate: the counts of one comparison, and their sum over many clips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import jiwer


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Outcome of aligning a transcript with its reference, in words."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def reference_words(self) -> int:
        """Words in the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        """Words wrong, lost or invented."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def wer(self) -> float | None:
        """Errors for each reference word (may exceed 1); ``None`` where there is no reference word."""
        return self.errors / self.reference_words if self.reference_words else None


def compare(reference: str, transcript: str) -> WordCounts:
    """Counts for one pair of texts that are already normalised."""
    if not reference:  # jiwer has no word error rate for an empty reference, but invented words must count
        return WordCounts(insertions=len(transcript.split()))
    aligned = jiwer.process_words(reference, transcript)
    return WordCounts(aligned.hits, aligned.substitutions, aligned.deletions, aligned.insertions)


def total(counts: Iterable[WordCounts]) -> WordCounts:
    """Sum of the counts: the rate over many clips weighs words, not clips."""
    items = list(counts)
    return WordCounts(
        sum(item.hits for item in items),
        sum(item.substitutions for item in items),
        sum(item.deletions for item in items),
        sum(item.insertions for item in items),
    )
