"""Hierarchies that come with the package: each knows the broader values of a kind of codes, names or numbers.

A hierarchy is one file here and one line in `HIERARCHIES`; its name is a builder of the schema
(``taxonomy = { builder = "icd-10" }``). It places the values that a column has and says which it cannot place.
"""

from collections.abc import Sequence

from velado.data.hierarchies._hierarchy import Hierarchy, Placed, tree_of
from velado.data.hierarchies.ages import AGES
from velado.data.hierarchies.cep import CEP
from velado.data.hierarchies.icd10 import ICD10
from velado.data.hierarchies.municipalities import MUNICIPALITIES

HIERARCHIES: tuple[Hierarchy, ...] = (AGES, CEP, ICD10, MUNICIPALITIES)

_MOST_ASKED = 2_000
_LEAST_KNOWN = 5
_KNOWN, _PLACED = 0.9, 0.5


def fitting(values: Sequence[str]) -> Hierarchy | None:
    """The telling hierarchy that these values are of, as far as the first of them show; None where none is.

    Nine tenths must be known, in one meaning or several, and at least half and five have one place.

    >>> fitting(["Recife", "Olinda", "Manaus", "Natal", "Curitiba"]).name, fitting(["10", "20", "30", "40", "50"])
    ('municipality', None)
    """
    asked = list(dict.fromkeys(values))[:_MOST_ASKED]
    for one in HIERARCHIES:
        if not one.telling:
            continue
        found = one.place(asked)
        known = len(found.paths) + len(found.ambiguous)
        placed = len(found.paths)
        if placed >= max(_LEAST_KNOWN, _PLACED * len(asked)) and known >= _KNOWN * len(asked):
            return one
    return None


__all__ = ["HIERARCHIES", "Hierarchy", "Placed", "fitting", "tree_of"]
