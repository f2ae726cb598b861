"""The one way to compiled code: Numba's `njit`, whose cache also sees what was compiled in from other files.

Numba keeps compiled code beside its source, or in the user's cache where that folder cannot be written, and takes it as
long as the file it was written in is the same. But a kernel holds the kernels that it calls, wherever they stand, and the
numbers that it names. So its stamp is made of

    the file + the stamps of the kernels from other files that its module imports + the values that it names,

and a change of any of them compiles it, and whatever is built on it, anew; other kernels stay. Nothing is read for this:
Numba has read the file already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

__all__ = ["njit"]
_VALUES = (bool, int, float, str, tuple, np.generic)


if TYPE_CHECKING:
    # It has no types, so that what it decorates keeps its own signature.
    from numba import njit
else:

    def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
        """Numba's decorator of the same name, with the same options. What it decorates keeps its own signature for who reads it.

        >>> @njit()
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
        """

        def compiled(function: Callable[..., Any]) -> Any:
            kernel = numba.njit(**options)(function)
            stamped = _cache_file(kernel)
            if stamped is not None:
                own = repr((stamped._source_stamp, _taken_in(function)))
                stamped._source_stamp = hashlib.sha256(own.encode()).digest()
            return kernel

        return compiled


def _cache_file(kernel: Any) -> Any:
    """Where Numba keeps the stamp of a kernel: None for one without a cache."""
    return getattr(getattr(kernel, "_cache", None), "_cache_file", None)


def _taken_in(function: Callable[..., Any]) -> list[object]:
    """What is compiled into a kernel from elsewhere, in an order of its own: all that is imported above it."""
    around: Mapping[str, Any] = function.__globals__
    named = {*function.__code__.co_names}
    out: list[object] = []
    for name in sorted(around):
        value = around[name]
        if isinstance(value, Dispatcher):
            if value.py_func.__module__ != function.__module__:
                out.append((name, _stamp(value)))
        elif isinstance(value, type):
            # The fields of a record are known to compiled code by their places.
            if issubclass(value, tuple) and hasattr(value, "_fields"):
                out.append((name, value._fields))
        elif name in named and isinstance(value, np.ndarray):
            out.append((name, value.dtype.str, value.shape, value.tobytes()))
        elif name in named and isinstance(value, _VALUES):
            out.append((name, value))
    return out


def _stamp(kernel: Dispatcher) -> object:
    file = _cache_file(kernel)
    code = kernel.py_func.__code__
    return (code.co_code, code.co_consts) if file is None else file._source_stamp
