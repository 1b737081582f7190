"""Looks at this computer and says what runs here, how fast, and what is in the way."""
