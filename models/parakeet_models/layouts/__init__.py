"""Published exports of this network, by others, as they are: recognised, checked, described (docs/layouts.md)."""

from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import ForeignBundle, Layout
from parakeet_models.layouts.probe import describe, load_model

__all__ = ["ForeignBundle", "Layout", "LayoutError", "describe", "load_model"]
