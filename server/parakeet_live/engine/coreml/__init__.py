"""The Core ML backend: models in processes of their own, because a prediction holds Python's global lock."""
