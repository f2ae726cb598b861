"""The start of compiled code in a process of the command line, without libraries that none of it calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNUSED = ("scipy.linalg.cython_blas", "cffi")
"""What Numba looks for when its first kernel starts: matrix products and foreign functions. No kernel of velado has either."""


def load_first_kernel() -> None:
    """Numba is ready, and SciPy's linear algebra and cffi are still not loaded: a tenth of the time of a short run.

    For a process that is ours alone: a kernel that multiplies matrices could not be compiled in it afterwards. Where Numba is
    ready already nothing happens; whoever asks for the libraries later gets them.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    import numpy as np

    from velado.release.methods.progressive._neighbour_graph import next_random

    with _held_back(*UNUSED):
        next_random(np.array([1], dtype=np.int64))


@contextmanager
def _held_back(*names: str) -> Iterator[None]:
    """Inside, the modules named count as not installed, unless they are loaded already."""
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment]  # what Python takes for "cannot be imported"
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
