"""The machine-readable form: everything the recogniser said about one recording, as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from parakeet_live.session.events import Final


def to_json(
    finals: Sequence[Final], *, source: str, audio_ms: int, formatted: Sequence[Final] | None = None
) -> str:
    """One JSON object on one line, so that many recordings make a JSON Lines file. Times in milliseconds.

    ``formatted``: the same finals in readable form, whose text is then given beside the raw one.
    """
    pairs = zip(finals, finals if formatted is None else formatted, strict=True)
    spoken = [(final, shown.text if formatted is not None else None) for final, shown in pairs if final.text]
    document = {
        "source": source,
        "audio_ms": audio_ms,
        "text": " ".join(final.text for final, _ in spoken),
        "formatted": None if formatted is None else " ".join(text or "" for _, text in spoken),
        "utterances": [_utterance(final, text) for final, text in spoken],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _utterance(final: Final, formatted: str | None) -> dict[str, object]:
    return {
        "utterance": final.utterance,
        "text": final.text,
        "formatted": formatted,
        "start_ms": final.words[0].start_ms if final.words else None,
        "end_ms": final.words[-1].end_ms if final.words else None,
        "reason": final.reason.value,
        "words": [asdict(word) | {"confidence": round(word.confidence, 3)} for word in final.words],
    }
