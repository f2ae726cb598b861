"""CEP, the Brazilian postal code: eight digits, of which every shorter beginning is a wider area."""

from __future__ import annotations

import re

from velado.data.hierarchies._hierarchy import Broader, Hierarchy
from velado.text import say

_CEP = re.compile(r"(\d{5})[-. ]?(\d{3})|(\d{2})\.(\d{3})-(\d{3})")


def _broader(value: str) -> Broader | None:
    found = _CEP.fullmatch(value.strip())
    if found is None:
        return None
    digits = "".join(part for part in found.groups() if part)
    return tuple(f"{digits[:keep]:*<8}" for keep in (5, 3, 2, 1))


CEP = Hierarchy("cep", say("Postal codes of Brazil (CEP): 5, 3, 2 and 1 digits"), _broader)
