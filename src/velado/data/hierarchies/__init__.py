"""Hierarchies that come with the package: each knows the broader values of a kind of codes, names or numbers.

A hierarchy is one file here and one line in `HIERARCHIES`; its name is a builder of the schema
(``taxonomy = { builder = "icd-10" }``). It places the values that a column has and says which it cannot place.
"""

from velado.data.hierarchies._hierarchy import Hierarchy, Placed, tree_of
from velado.data.hierarchies.ages import AGES
from velado.data.hierarchies.cep import CEP
from velado.data.hierarchies.icd10 import ICD10
from velado.data.hierarchies.municipalities import MUNICIPALITIES

HIERARCHIES: tuple[Hierarchy, ...] = (AGES, CEP, ICD10, MUNICIPALITIES)

__all__ = ["HIERARCHIES", "Hierarchy", "Placed", "tree_of"]
