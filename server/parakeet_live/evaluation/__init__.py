"""How good the recogniser is on recordings with known text: word errors, and where utterances are ended."""
