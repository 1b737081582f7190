"""The recipe that trains the embedded model `tiny-en`: `python -m parakeet_models.training`.

Reading order: `grammar` (what can be said), `synthesis` and `accents` (the voices), `generate` (clips on disk),
`library` and `streams` (clips to training streams), `augment` and `features` (what the model hears), `batches`,
`model`, `loss`, `schedule`, `trainer`, `evaluate`, `export`. README.md beside this file says why it is so.
"""
