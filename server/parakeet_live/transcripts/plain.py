"""Plain text: one line an utterance."""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_live.session.events import Final


def to_text(finals: Iterable[Final]) -> str:
    """One line for each utterance that has words, each line ended by a line feed; empty for no speech."""
    return "".join(f"{final.text}\n" for final in finals if final.text)
