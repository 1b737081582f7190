"""The one error of this package."""


class NemoError(Exception):
    """An archive cannot be used; the message names what was found, what is needed, and the remedy."""
