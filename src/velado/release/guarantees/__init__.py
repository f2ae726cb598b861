"""Guarantees: promises about groups, each a frozen dataclass that reads counts and gives a Verdict."""

from __future__ import annotations

import difflib

from velado.errors import ParameterError
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


def guarantee_named(name: str) -> type[Guarantee]:
    """The guarantee registered under *name*, or an error that suggests the nearest."""
    for guarantee in GUARANTEES:
        if guarantee.name == name:
            return guarantee
    names = [guarantee.name for guarantee in GUARANTEES]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"Choose one of {', '.join(names)}."
    raise ParameterError(
        f"There is no guarantee '{name}'.", "Only registered guarantees can be checked.", hint
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
    "guarantee_named",
]
