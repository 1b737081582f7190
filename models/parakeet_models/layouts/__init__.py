"""Published exports of this network, by others, as they are: recognised, checked, described (docs/layouts.md)."""

from parakeet_models.layouts.errors import LayoutError
from parakeet_models.layouts.layout import AnyBundle, ForeignBundle, Layout
from parakeet_models.layouts.probe import describe, load_model

__all__ = ["AnyBundle", "ForeignBundle", "Layout", "LayoutError", "describe", "load_model"]
