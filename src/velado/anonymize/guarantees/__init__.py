"""Guarantees: promises about groups, each a frozen dataclass that reads counts and gives a Verdict."""

from velado.anonymize.guarantees.base import Guarantee, Verdict
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.guarantees.l_diversity import LDiversity

GUARANTEES: tuple[type[Guarantee], ...] = (KAnonymity, LDiversity)

__all__ = ["GUARANTEES", "Guarantee", "KAnonymity", "LDiversity", "Verdict"]
