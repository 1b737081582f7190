"""Runs published exports of the network as they are: NeMo's cache-aware graphs with whole caches in and out."""
