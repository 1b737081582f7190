"""The words of the domain, in groups: one place decides what is one token, what is spoken alone and what phrases use.

A word may be followed by `|` and what a synthesiser is told to say, with `_` for a space: `am|a_m` is written "am" and
spoken "a m". `written` and `spoken` take such texts apart.
"""

from __future__ import annotations

DIGITS: tuple[str, ...] = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
"""The ten digits in order; `oh` is the second name of zero."""

SPOKEN_DIGITS: tuple[str, ...] = (*DIGITS, "oh")

TEENS: tuple[str, ...] = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS: tuple[str, ...] = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES: tuple[str, ...] = ("hundred", "thousand", "million", "billion")

ORDINALS: dict[str, str] = {
    "one": "first", "two": "second", "three": "third", "four": "fourth", "five": "fifth", "six": "sixth",
    "seven": "seventh", "eight": "eighth", "nine": "ninth", "ten": "tenth", "eleven": "eleventh",
    "twelve": "twelfth", "thirteen": "thirteenth", "fourteen": "fourteenth", "fifteen": "fifteenth",
    "sixteen": "sixteenth", "seventeen": "seventeenth", "eighteen": "eighteenth", "nineteen": "nineteenth",
    "twenty": "twentieth", "thirty": "thirtieth", "forty": "fortieth", "fifty": "fiftieth", "sixty": "sixtieth",
    "seventy": "seventieth", "eighty": "eightieth", "ninety": "ninetieth", "hundred": "hundredth",
    "thousand": "thousandth", "million": "millionth", "billion": "billionth",
}  # fmt: skip
"""Last word of a cardinal → the ordinal's."""

MONTHS: tuple[str, ...] = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS: tuple[str, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAYS: tuple[str, ...] = ("today", "tomorrow", "yesterday", "tonight")
TIME: tuple[str, ...] = (
    "am|a_m", "pm|p_m", "o'clock", "half", "past", "quarter", "to", "noon", "midnight", "second", "seconds",
    "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years",
    "morning", "afternoon", "evening", "night", "weekend", "date", "time", "at", "on",
)  # fmt: skip
MONEY: tuple[str, ...] = (
    "dollar", "dollars", "cent", "cents", "pound", "pounds", "penny", "pence", "euro", "euros", "percent",
    "point", "minus", "plus", "times", "and",
)  # fmt: skip

LETTERS: tuple[str, ...] = tuple("abcdefghijklmnopqrstuvwxyz")
LETTER_SOUNDS: dict[str, tuple[str, ...]] = {"a": ("ay",), "z": ("zee", "zee", "zed")}
"""Letters that a synthesiser would read as a word, or that have two names."""
ZED = "zed"

NATO: tuple[str, ...] = (
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima",
    "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey",
    "xray|x_ray", "yankee", "zulu",
)  # fmt: skip

SYMBOLS: tuple[str, ...] = (
    "dash", "hyphen", "dot", "slash", "backslash", "hash", "star", "asterisk", "underscore", "colon", "semicolon",
    "comma", "period", "equals", "tilde", "caret", "pipe", "ampersand", "apostrophe", "backtick", "brace",
    "bracket", "parenthesis", "quote", "space", "capital", "dollar sign", "percent sign", "at sign",
    "pound sign", "hash sign", "plus sign", "minus sign", "equals sign", "question mark", "exclamation mark",
    "quotation mark", "open bracket", "close bracket", "open brace", "close brace", "left brace", "right brace",
    "left bracket", "right bracket", "open parenthesis", "close parenthesis", "left parenthesis",
    "right parenthesis", "less than", "greater than", "double quote", "single quote", "forward slash",
    "full stop", "new line",
)  # fmt: skip

ANSWERS: tuple[str, ...] = (
    "yes", "no", "yeah", "nope", "yep", "okay", "sure", "correct", "incorrect", "right", "wrong", "stop", "go",
    "help", "cancel", "next", "back", "repeat", "hello", "hi", "goodbye", "bye", "thanks", "thank you", "please",
    "wait", "again", "maybe", "operator", "agent", "continue", "skip", "start", "begin", "finish", "done", "exit",
    "quit", "menu", "pause", "resume", "play", "previous", "open", "close", "up", "down", "left", "on", "off",
    "sorry", "hold on", "not", "never", "always", "of course", "all right", "fine", "good", "great", "absolutely",
)  # fmt: skip

TELEPHONE: tuple[str, ...] = (
    "account", "address", "agent", "answer", "balance", "bill", "billing", "branch", "busy", "call", "caller",
    "calls", "card", "change", "charge", "choice", "code", "conference", "confirm", "connect", "contact", "customer",
    "credit", "debit", "delete", "department", "details", "dial", "directory", "email", "enter", "erase",
    "error", "extension", "folder", "followed", "forward", "greeting", "headset", "hear", "hold", "information",
    "internet", "invalid", "invoice", "key", "keypad", "line", "listen", "login", "mailbox", "main", "manager",
    "message", "messages", "mobile", "mute", "muted", "name", "network", "number", "numbers", "offer", "office",
    "option", "options", "order", "party", "password", "pay", "payment", "person", "phone", "pin", "policy", "postcode",
    "press", "queue", "receipt", "received", "record", "recording", "reference", "refund", "representative",
    "return", "sales", "save", "saved", "say", "security", "select", "send", "service", "speak", "status",
    "support", "system", "technical", "telephone", "tone", "transfer", "try", "unavailable", "urgent", "user",
    "valid", "verify", "voicemail", "welcome", "website", "zip",
)  # fmt: skip

COMMANDS: tuple[str, ...] = (
    "alarm", "album", "app", "bathroom", "bedroom", "bluetooth", "brightness", "calendar", "camera", "channel",
    "computer", "door", "fan", "front", "garage", "heating", "home", "house", "kitchen", "lamp", "light",
    "lights", "list", "living", "lock", "louder", "map", "meeting", "music", "news", "photo", "picture", "quieter",
    "radio", "read", "remind", "reminder", "room", "screen", "search", "set", "show", "shuffle", "shopping",
    "song", "temperature", "text", "thermostat", "timer", "traffic", "turn", "unlock", "unmute", "video", "volume",
    "wake", "weather", "window", "wifi|wi_fi", "tell",
)  # fmt: skip

GROUPS: dict[str, tuple[str, ...]] = {
    "digit": SPOKEN_DIGITS, "number": (*TEENS, *TENS, *SCALES, *ORDINALS.values()),
    "calendar": (*MONTHS, *WEEKDAYS, *DAYS), "time": TIME, "money": MONEY, "letter": (*LETTERS, ZED),
    "nato": NATO, "symbol": SYMBOLS, "answer": ANSWERS, "telephone": TELEPHONE, "command": COMMANDS,
}  # fmt: skip
"""Everything that is spoken on its own, by group."""


def written(text: str) -> str:
    """What a transcript says: lower-case words, single spaces."""
    return " ".join(token.split("|")[0] for token in text.split())


def spoken(text: str) -> str:
    """What a synthesiser is told to say."""
    return " ".join(token.split("|")[-1].replace("_", " ") for token in text.split())


def spoken_counts(text: str) -> list[int]:
    """For each written word the number of words of `spoken`: 2 for `am|a_m`."""
    return [token.split("|")[-1].count("_") + 1 for token in text.split()]


def domain_words() -> list[str]:
    """Every written word of the groups, sorted: each is one token."""
    return sorted({word for group in GROUPS.values() for text in group for word in written(text).split()})
