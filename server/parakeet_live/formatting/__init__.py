"""Readable text beside the raw text of finals: casing, punctuation, numbers as digits.

Formatters turn words into words, so that the times stay; they run on finals only. Others than those here come from
installed packages by the entry point group ``parakeet_live.formatters``.
"""

from parakeet_live.formatting.formatter import FinalFormatter, Formatter, Sentence
from parakeet_live.formatting.registry import UnknownFormatterError, make_final_formatter, names, split_names

__all__ = [
    "FinalFormatter",
    "Formatter",
    "Sentence",
    "UnknownFormatterError",
    "make_final_formatter",
    "names",
    "split_names",
]
