"""compare(): every method on the user's own table, at the same promise, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.table import Undeclared
from velado.errors import ParameterError, VeladoError
from velado.measures.measured import measure
from velado.release.anonymize import carry_out, goal_for
from velado.release.goal import Progress, silent
from velado.release.guarantees._guarantee import Guarantee
from velado.release.methods import METHODS, method_named
from velado.release.methods._method import Method
from velado.release.prepare import prepare


@dataclass(frozen=True)
class Compared:
    """One method's release of the table: its loss, groups and risk, or the sentence that says why there is none."""

    method: str
    loss: float | None = None
    groups: int | None = None
    smallest: int | None = None
    suppressed: int | None = None
    linked: float | None = None
    false_cells: float | None = None
    seconds: float | None = None
    failed: str = ""


@dataclass(frozen=True)
class Comparison:
    """All methods at one promise, the least loss first; those that failed last, with their reason."""

    k: int
    rows: int
    guarantees: tuple[str, ...]
    results: tuple[Compared, ...]

    @property
    def best(self) -> Compared | None:
        """The method that lost least, if any kept the promise."""
        return next((result for result in self.results if result.loss is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "k": self.k,
            "rows": self.rows,
            "guarantees": list(self.guarantees),
            "loss": "normalized certainty penalty, leaves-1",
            "results": [asdict(result) for result in self.results],
        }


def compare(
    source: Any,
    schema: Schema,
    k: int = 5,
    methods: Sequence[str] | None = None,
    guarantees: Sequence[Guarantee] = (),
    *,
    suppression: float = 0.0,
    seed: int = 0,
    per: str | None = None,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Every registered method that guarantees k (or those named), run on *source* with the same promise.

    A method that cannot keep it is listed with its reason; nothing is left out in silence. *settings* gives
    further parameters per method. Seconds are CPU seconds of the method and its check (the table is prepared once, for all), compilation included in
    the first use of a kernel.
    """
    table = read_table(source, schema, undeclared)
    chosen = _chosen(methods)
    prepared = prepare(table, per=per, population=population)
    results = []
    for number, kind in enumerate(chosen):
        progress(number / len(chosen), kind.title)
        method = kind(**(settings or {}).get(kind.name, {}))
        goal = goal_for(prepared, method, k, guarantees, suppression)
        start = time.process_time()
        try:
            release = carry_out(prepared, method, goal, seed=seed)
        except VeladoError as error:
            results.append(Compared(kind.name, failed=error.what))
            continue
        spent = time.process_time() - start
        scores = measure(release).to_dict()
        sizes = release.checked.partition.sizes
        linkage = scores.get("risk", {}).get("record_linkage") or {}
        results.append(
            Compared(
                kind.name,
                release.loss,
                int(sizes.size),
                int(sizes.min()),
                release.suppressed,
                linkage.get("share"),
                scores.get("utility", {}).get("false_cells", {}).get("share"),
                spent,
            )
        )
    progress(1.0, "done")
    results.sort(key=lambda result: (result.loss is None, result.loss or 0.0, result.method))
    names = ("k-anonymity", *(guarantee.name for guarantee in guarantees))
    return Comparison(k, table.rows, names, tuple(results))


def _chosen(names: Sequence[str] | None) -> list[type[Method]]:
    if names is None:
        return [method for method in METHODS if method.promise == "guaranteed"]
    chosen = [method_named(name) for name in names]
    for method in chosen:
        if method.promise != "guaranteed":
            raise ParameterError(
                f"'{method.name}' promises no class size.",
                "Methods are compared at the same promise.",
                "Leave it out; its own report says what it does.",
            )
    return chosen
