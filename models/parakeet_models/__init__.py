"""Models of parakeet-live: the bundle format, the network, converters and the training recipe.

Importing this package, :mod:`parakeet_models.mel` or :mod:`parakeet_models.bundle` needs no torch; the
sub-packages ``network``, ``export`` and ``training`` do (extras ``convert`` and ``train``).
"""
