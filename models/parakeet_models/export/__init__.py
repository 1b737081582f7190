"""Converters: from a checkpoint to what a backend runs. Needs the extra ``convert``."""
