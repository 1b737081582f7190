"""``parakeet-live bench``: a load generator, and the measurements of a server under that load.

The generator is the process of the command itself; the server is another one, which it starts or is pointed to.
"""
