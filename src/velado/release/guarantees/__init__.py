"""Guarantees: promises about groups, each a settings class that reads counts and gives a Verdict.

Adding one: a file with the class, a line in GUARANTEES, a test. Nothing else in the package knows it by name.
"""

from __future__ import annotations

from velado.release.guarantees._guarantee import Guarantee, Verdict
from velado.release.guarantees.beta_likeness import BetaLikeness
from velado.release.guarantees.delta_presence import DeltaPresence
from velado.release.guarantees.entropy_l_diversity import EntropyLDiversity
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.guarantees.k_map import KMap
from velado.release.guarantees.l_diversity import LDiversity
from velado.release.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.release.guarantees.t_closeness import TCloseness

GUARANTEES: tuple[type[Guarantee], ...] = (
    KAnonymity,
    LDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
    BetaLikeness,
    KMap,
    DeltaPresence,
)

__all__ = [
    "GUARANTEES",
    "BetaLikeness",
    "DeltaPresence",
    "EntropyLDiversity",
    "Guarantee",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "RecursiveLDiversity",
    "TCloseness",
    "Verdict",
]
