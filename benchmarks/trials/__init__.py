"""Trials of a running server that take too long, or too much of a machine, for the test suite.

``python -m benchmarks.trials NAME``; benchmarks/README.md says what each is for.
"""
