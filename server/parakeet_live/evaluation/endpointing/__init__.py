"""The benchmark of ends of utterance: streams composed from recordings, with known ends, pauses, noise and music.

``material`` cuts recordings into speech with known ends, ``scenes`` says which streams are made, ``compose`` makes
them, ``run`` streams them through real sessions, ``judge`` compares turns with what came, ``summary`` counts.
"""
