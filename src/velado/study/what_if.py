"""What another k, or letting some rows go, would have changed: the same method run again beside a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from velado.errors import VeladoError
from velado.release.anonymize import carry_out
from velado.release.goal import Progress, silent
from velado.release.methods.progressive.lower_bound import lower_bound
from velado.release.release import Release

# How far a release is from the best possible one for the same table: a proven bound, whatever the method.
#
# The bound (see `velado.release.methods.progressive.lower_bound`) holds for every grouping with at least k rows in each
# class. Further guarantees, k per person, substitutions and suppressed rows (each counted as wholly lost) can only
# cost more, so it holds for any release of the table.

LARGEST_BOUNDED = 200_000
"""Larger tables get no bound: it looks at every row again for each box that holds it."""
WORK = 60_000_000
"""Tuples looked at: about a second of one core. More makes the bound tighter, not truer."""


def best_possible(release: Release) -> dict[str, Any]:
    """The least loss any release with the same k could have, and how far above it this one is at most."""
    k = release.goal.k
    if k is None:
        return {}
    if release.data.rows > LARGEST_BOUNDED:
        return {
            "lower_bound": None,
            "lower_bound_reason": f"not computed for more than {LARGEST_BOUNDED} rows",
        }
    # Rows that left before the method saw them lost everything; the bound speaks of the others.
    share = release.data.rows / release.table.rows
    bound = share * lower_bound(release.data, k, WORK) + (1 - share)
    reached = release.loss
    above = reached / bound - 1 if bound > 0 else (0.0 if reached <= 0 else None)
    return {"lower_bound": bound, "above_best_possible_at_most": above}


LARGEST_RERUN = 1_000_000
"""Rows x quasi-identifiers up to which the reruns are made: a rule, not a clock, so that reports repeat."""

SUPPRESSIONS = (0.01, 0.05)

Skipped = Literal["", "large", "no-k"]


@dataclass(frozen=True)
class WhatIf:
    """One rerun with k or the suppression limit changed: what it gave, or the sentence why it failed."""

    k: int
    suppression: float
    changed: Literal["k", "suppression"]
    loss: float | None = None
    suppressed: int | None = None
    groups: int | None = None
    smallest: int | None = None
    failed: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class WhatIfs:
    """All reruns, or why there are none: the table is "large", or the method promises "no-k"."""

    runs: tuple[WhatIf, ...] = ()
    skipped: Skipped = ""


def what_ifs(release: Release, progress: Progress = silent) -> WhatIfs:
    """The release's method on the same table at k/2 and 2k, and with 1 % and 5 % suppression if none is allowed.

    Costs up to four runs of the method alone: the table is neither read nor judged nor encoded again.
    """
    k = release.goal.k
    if k is None or release.method.promise == "measured":
        return WhatIfs(skipped="no-k")
    if release.data.rows * len(release.data.columns) > LARGEST_RERUN:
        return WhatIfs(skipped="large")
    limit, rows = release.goal.suppression, release.table.rows
    asked: list[tuple[Literal["k", "suppression"], int, float]] = []
    asked += [("k", other, limit) for other in (k // 2, 2 * k) if 2 <= other <= rows and other != k]
    asked += [("suppression", k, other) for other in SUPPRESSIONS if limit == 0]
    runs = []
    for number, (changed, other, suppression) in enumerate(asked):
        progress(number / len(asked), "what if")
        runs.append(_rerun(release, other, suppression, changed))
    return WhatIfs(tuple(runs))


def _rerun(release: Release, k: int, suppression: float, changed: Literal["k", "suppression"]) -> WhatIf:
    goal = replace(release.goal.at(k), suppression=suppression)
    try:
        other = carry_out(release.prepared, release.method, goal, seed=release.seed)
    except VeladoError as error:
        return WhatIf(k, suppression, changed, failed=error.what)
    sizes = other.checked.partition.sizes
    return WhatIf(k, suppression, changed, other.loss, other.suppressed, int(sizes.size), int(sizes.min()))
