"""What can be wrong with a published layout."""

from parakeet_models.bundle import BundleError


class LayoutError(BundleError):
    """A directory of published graphs cannot be used; the message names the reason and the remedy."""
