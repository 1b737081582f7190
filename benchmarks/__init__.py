"""Benchmarks of the engine; not installed. README.md says what each measures and how to run it."""
