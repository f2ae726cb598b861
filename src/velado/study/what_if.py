"""What another k, or letting some rows go, would have changed: the same method run again beside a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from velado.anonymize.anonymize import carry_out
from velado.anonymize.goal import Progress, silent
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.methods.base import Method
from velado.anonymize.release import Release
from velado.errors import VeladoError

LARGEST = 1_000_000
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


def what_ifs(release: Release, guarantees: Sequence[Guarantee], progress: Progress = silent) -> WhatIfs:
    """The release's method on the same table at k/2 and 2k, and with 1 % and 5 % suppression if none is allowed.

    *guarantees* are those beyond the method's own k. Costs up to four runs of the method alone: the table is
    neither read nor judged nor encoded again.
    """
    promised = next((g for g in release.goal.guarantees if isinstance(g, KAnonymity)), None)
    k = getattr(release.method, "k", None)
    if promised is None or not isinstance(k, int):
        return WhatIfs(skipped="no-k")
    if release.data.rows * len(release.data.columns) > LARGEST:
        return WhatIfs(skipped="large")
    limit, rows = release.goal.suppression, release.table.rows
    asked: list[tuple[Literal["k", "suppression"], int, float]] = []
    asked += [("k", other, limit) for other in (k // 2, 2 * k) if 2 <= other <= rows and other != k]
    asked += [("suppression", k, other) for other in SUPPRESSIONS if limit == 0]
    runs = []
    for number, (changed, other, suppression) in enumerate(asked):
        progress(number / len(asked), "what if")
        runs.append(_run(release, guarantees, other, suppression, changed))
    return WhatIfs(tuple(runs))


def _run(
    release: Release,
    guarantees: Sequence[Guarantee],
    k: int,
    suppression: float,
    changed: Literal["k", "suppression"],
) -> WhatIf:
    method: Method = replace(release.method, k=k)  # type: ignore[type-var]
    try:
        other = carry_out(release.prepared, method, guarantees, suppression=suppression, seed=release.seed)
    except VeladoError as error:
        return WhatIf(k, suppression, changed, failed=error.what)
    sizes = other.checked.partition.sizes
    return WhatIf(k, suppression, changed, other.loss, other.suppressed, int(sizes.size), int(sizes.min()))
