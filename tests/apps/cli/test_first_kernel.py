"""Compiled code starts without the libraries that none of it calls, and leaves them to whoever wants them."""

from __future__ import annotations

import subprocess
import sys

from velado.apps.cli.first_kernel import UNUSED

_PROGRAMME = f"""
import importlib, sys
from velado.apps.cli.first_kernel import load_first_kernel
import velado.study.run
load_first_kernel()
assert "numba.np.arraymath" in sys.modules, "Numba is not ready"
loaded = [name for name in {UNUSED!r} + ("scipy.linalg", "pycparser") if name in sys.modules]
assert not loaded, loaded
for name in {UNUSED!r}:
    importlib.import_module(name)
load_first_kernel()
"""


def test_the_first_kernel_loads_neither_linear_algebra_nor_foreign_functions() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAMME], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
