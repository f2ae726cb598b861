"""room_of(): how many bytes of memory a run may hold, from what a person says of it."""

from __future__ import annotations

import re

from velado.errors import ParameterError
from velado.text import say

DEFAULT_ROOM = "600MB"
"""What an engine's run may hold in memory where nobody says."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", re.IGNORECASE)


def room_of(memory: str | None) -> int:
    """The bytes that *memory* says, e.g. "3GB"; 600 MB where it says nothing.

    >>> room_of("3GB"), room_of("1 GiB"), room_of(None)
    (3000000000, 1073741824, 600000000)
    >>> room_of("plenty")
    Traceback (most recent call last):
    velado.errors.ParameterError: --memory is not a size: 'plenty'. It says how many bytes may be held in memory. Use for example --memory 3GB.
    """
    said = _SIZE.fullmatch((memory or DEFAULT_ROOM).strip())
    if said is None:
        raise ParameterError(
            say("--memory is not a size: '{size}'.", size=memory),
            "It says how many bytes may be held in memory.",
            "Use for example --memory 3GB.",
        )
    power = " KMGT".index(said[2].upper() or " ")
    return int(float(said[1]) * float(1024 if said[3] else 1000) ** power)
