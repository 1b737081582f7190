"""Import this before NumPy: its linear algebra then starts no thread for each core of the machine.

Lanes fill the cores, and every operation of ours is small. In a container with a quota, a library that counts the cores
of the host would have its threads fight for what little there is.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
