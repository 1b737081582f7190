"""Models of parakeet-live: the bundle format, the network, converters and the training recipe.

Importing this package, :mod:`parakeet_models.mel` or :mod:`parakeet_models.bundle` needs no torch; every
sub-package does (extras ``convert`` and ``train``).
"""
