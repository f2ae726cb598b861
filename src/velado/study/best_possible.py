"""How far a release is from the best possible one for the same table: a proven bound, whatever the method.

The bound (see `velado.anonymize.methods.progressive_bound`) holds for every grouping with at least k rows in each
class. Further guarantees, k per person, substitutions and suppressed rows (each counted as wholly lost) can only
cost more, so it holds for any release of the table.
"""

from __future__ import annotations

from typing import Any

from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.methods.progressive_bound import lower_bound
from velado.anonymize.release import Release

LARGEST = 200_000
"""Larger tables get no bound: it looks at every row again for each box that holds it."""
WORK = 60_000_000
"""Tuples looked at: about a second of one core. More makes the bound tighter, not truer."""


def best_possible(release: Release) -> dict[str, Any]:
    """The least loss any release with the same k could have, and how far above it this one is at most."""
    ks = [guarantee.k for guarantee in release.goal.guarantees if isinstance(guarantee, KAnonymity)]
    if not ks:
        return {}
    if release.data.rows > LARGEST:
        return {"lower_bound": None, "lower_bound_reason": f"not computed for more than {LARGEST} rows"}
    # Rows that left before the method saw them lost everything; the bound speaks of the others.
    share = release.data.rows / release.table.rows
    bound = share * lower_bound(release.data, max(ks), WORK) + (1 - share)
    reached = release.loss
    above = reached / bound - 1 if bound > 0 else (0.0 if reached <= 0 else None)
    return {"lower_bound": bound, "above_best_possible_at_most": above}
