"""What another k, or letting some rows go, would have changed, and how far a release is from the best possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from velado.errors import VeladoError
from velado.release.anonymize import carry_out
from velado.release.goal import Progress, silent
from velado.release.guarantees._guarantee import Guarantee
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.methods._method import Method
from velado.release.methods.progressive.lower_bound import lower_bound
from velado.release.release import Release
from velado.report.facts import WhatIf, WhatIfs
from velado.text import say

LARGEST_BOUNDED = 200_000
"""Larger tables get no bound: it looks at every row again for each box that holds it."""
WORK = 60_000_000
"""Tuples looked at: about a second of one core. More makes the bound tighter, not truer."""
LARGEST_RERUN = 1_000_000
"""Rows x quasi-identifiers up to which the reruns are made: a rule, not a clock, so that reports repeat."""
SUPPRESSIONS = (0.01, 0.05)


def best_possible(release: Release) -> Mapping[str, object]:
    """The least loss any release with the same k could have, and how far above it this one is at most, as notes.

    The bound (see `velado.release.methods.progressive.lower_bound`) holds for every grouping with at least k rows in
    each group. Further guarantees, k per person, substitutions and suppressed rows (each counted as wholly lost) can
    only cost more, so it holds for any release of the table.
    """
    ks = [guarantee.k for guarantee in release.goal.guarantees if isinstance(guarantee, KAnonymity)]
    if not ks:
        return {}
    if release.data.rows > LARGEST_BOUNDED:
        reason = say("not computed for more than {rows:,} rows", rows=LARGEST_BOUNDED)
        return {"lower_bound": None, "lower_bound_reason": reason}
    # Rows that left before the method saw them lost everything; the bound speaks of the others.
    share = release.data.rows / release.table.rows
    bound = share * lower_bound(release.data, max(ks), WORK) + (1 - share)
    reached = release.loss
    above = reached / bound - 1 if bound > 0 else (0.0 if reached <= 0 else None)
    return {"lower_bound": bound, "above_best_possible_at_most": above}


def what_ifs(release: Release, guarantees: Sequence[Guarantee], progress: Progress = silent) -> WhatIfs:
    """The release's method on the same table at k/2 and 2k, and with 1 % and 5 % suppression if none is allowed.

    *guarantees* are those beyond the method's own k. Costs up to four runs of the method alone: the table is
    neither read nor judged nor encoded again.
    """
    promised = next((g for g in release.goal.guarantees if isinstance(g, KAnonymity)), None)
    k = getattr(release.method, "k", None)
    if promised is None or not isinstance(k, int):
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
        method: Method = replace(release.method, k=other)  # type: ignore[type-var]
        try:
            again = carry_out(
                release.prepared, method, guarantees, suppression=suppression, seed=release.seed
            )
            runs.append(WhatIf.of(again, other, suppression, changed))
        except VeladoError as error:
            runs.append(WhatIf(k=other, suppression=suppression, changed=changed, failed=error.what))
    return WhatIfs(runs=tuple(runs))
