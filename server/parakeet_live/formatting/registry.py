"""Finds formatters by name: those of this package, and those of installed packages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from parakeet_live.formatting.formatter import FinalFormatter, Formatter
from parakeet_live.formatting.numerals import Numerals
from parakeet_live.formatting.punctuation import Punctuation

GROUP = "parakeet_live.formatters"
"""Entry point group. An entry point names a callable: language tag in, :class:`Formatter` out; it raises ValueError for
a language it does not know."""

log = logging.getLogger(__name__)

BUILT_IN: dict[str, Callable[[str], Formatter]] = {"numerals": Numerals, "punctuation": Punctuation}
"""In the order in which they are applied: numbers are words that punctuation would capitalise."""


class UnknownFormatterError(ValueError):
    """No such formatter, or not for this language; the message says which there are."""


@cache
def installed() -> dict[str, EntryPoint]:
    """Formatters of installed packages. A name of ours stays ours: what a client asks for must not depend on what
    else is installed."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> tuple[str, ...]:
    """All formatters that can be asked for."""
    return (*BUILT_IN, *sorted(installed()))


def split_names(text: str) -> tuple[str, ...]:
    """``numerals, punctuation`` as one string to the names in it; empty for an empty string."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def make_final_formatter(wanted: Sequence[str], language: str) -> FinalFormatter | None:
    """The formatters of one stream; None where none is wanted. ``language``: tag such as ``en`` or ``pt-BR``.

    Those of this package come first, then the others in the order given. Raises UnknownFormatterError.
    """
    if not wanted:
        return None
    known = names()
    for name in wanted:
        if name not in known:
            raise UnknownFormatterError(f"{name!r} is no formatter; there are: {', '.join(known)}")
    ordered = [name for name in BUILT_IN if name in wanted] + [
        name for name in dict.fromkeys(wanted) if name not in BUILT_IN
    ]
    return FinalFormatter({name: _make(name, language) for name in ordered})


def _make(name: str, language: str) -> Formatter:
    try:
        factory: Callable[[str], Formatter] = BUILT_IN.get(name) or installed()[name].load()
        return factory(language)
    except ValueError as error:
        raise UnknownFormatterError(f"formatter {name!r} does not know the language {language}") from error
    except Exception as error:
        log.exception("the formatter %s cannot be loaded", name)
        raise UnknownFormatterError(f"formatter {name!r} cannot be loaded; see the server's log") from error
