"""What can go wrong with published weights, in words for the user."""

from __future__ import annotations


class HubError(Exception):
    """A model cannot be found, pulled or verified; the message names the reason and the remedy."""
