"""What another k, or letting some rows go, would have changed: the same method run again beside a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from velado.anonymize.goal import Progress, silent
from velado.anonymize.guarantees.base import Guarantee
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.methods.base import Method
from velado.anonymize.release import Release, anonymize
from velado.data.table import Table
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


def what_ifs(
    release: Release,
    table: Table,
    guarantees: Sequence[Guarantee],
    per: str | None = None,
    population: Table | None = None,
    progress: Progress = silent,
) -> WhatIfs:
    """The release's method on the same *table* at k/2 and 2k, and with 1 % and 5 % suppression if none is allowed.

    *table* is the input before column operations, *guarantees* those beyond the method's own k. Costs up to
    four runs of the method.
    """
    promised = next((g for g in release.goal.guarantees if isinstance(g, KAnonymity)), None)
    k = getattr(release.method, "k", None)
    if promised is None or not isinstance(k, int):
        return WhatIfs(skipped="no-k")
    if release.data.rows * len(release.data.columns) > LARGEST:
        return WhatIfs(skipped="large")
    limit = release.goal.suppression
    asked: list[tuple[Literal["k", "suppression"], int, float]] = []
    asked += [("k", other, limit) for other in (k // 2, 2 * k) if 2 <= other <= table.rows and other != k]
    asked += [("suppression", k, other) for other in SUPPRESSIONS if limit == 0]
    runs = []
    for number, (changed, other, suppression) in enumerate(asked):
        progress(number / len(asked), "what if")
        method: Method = replace(release.method, k=other)  # type: ignore[type-var]
        runs.append(_run(release, table, method, guarantees, other, suppression, changed, per, population))
    return WhatIfs(tuple(runs))


def _run(
    release: Release,
    table: Table,
    method: Method,
    guarantees: Sequence[Guarantee],
    k: int,
    suppression: float,
    changed: Literal["k", "suppression"],
    per: str | None,
    population: Table | None,
) -> WhatIf:
    try:
        other = anonymize(
            table,
            table.schema,
            method,
            guarantees,
            suppression=suppression,
            seed=release.seed,
            operations=release.operations,
            per=per,
            population=population,
        )
    except VeladoError as error:
        return WhatIf(k, suppression, changed, failed=error.what)
    sizes = other.checked.partition.sizes
    return WhatIf(k, suppression, changed, other.loss, other.suppressed, int(sizes.size), int(sizes.min()))
