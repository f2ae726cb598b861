"""The one file that makes random sources: seeded for work that must repeat, secure for noise and keys.

Everything else receives its source as an argument. A seed gives the same release byte for byte, so the
seeded source is a counter-based generator whose stream NumPy promises to keep (PCG64).
"""

from __future__ import annotations

import secrets

import numpy as np


def seeded(seed: int, *path: str) -> np.random.Generator:
    """A source that gives the same stream for the same *seed* and *path*, on every machine.

    *path* names the use (``seeded(0, "gfkmc")``), so that two parts of one run never share a stream and
    adding a part does not change the others.
    """
    words = [byte for name in path for byte in (*name.encode(), 256)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def secure() -> secrets.SystemRandom:
    """A source nobody can predict, from the operating system. For noise and keys."""
    return secrets.SystemRandom()
