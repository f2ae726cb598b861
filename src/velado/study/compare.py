"""compare(): every method on the user's own table, at the same promise, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.data.table import Undeclared
from velado.errors import ParameterError, VeladoError
from velado.measures.measured import measure
from velado.release.anonymize import carry_out, goal_for
from velado.release.goal import DEFAULT_K, Goal, Progress, silent
from velado.release.methods import METHODS
from velado.release.methods._method import Method
from velado.release.methods.improve import Effort
from velado.release.methods.progressive.objectives.least_penalty import LeastPenalty
from velado.release.methods.progressive.objectives.mixture import OBJECTIVES
from velado.release.methods.progressive.progressive import Progressive
from velado.release.prepare import Prepared, prepare
from velado.release.run_settings import Guarantees, run_settings
from velado.text import say

OTHERS = tuple(one for one in OBJECTIVES if one is not LeastPenalty)
"""The objectives beside the loss, which every method has by another name."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One method's release of the table: its loss, groups and risk, or the sentence that says why there is none.

    *objective* is what its search made small, where another one than the loss was asked for; *measured* has
    every other objective's measure by its name, beside *loss*, which is that of `ncp`. *highest* and *mean* are the risk of a
    person, or of a row where nobody says who one is, as the release's report tells it.

    >>> Compared(method="mdav", failed="No group holds.").loss is None
    True
    """

    method: str
    objective: str = ""
    loss: float | None = None
    groups: int | None = None
    smallest: int | None = None
    highest: float | None = None
    mean: float | None = None
    suppressed: int | None = None
    linked: float | None = None
    false_cells: float | None = None
    seconds: float | None = None
    measured: Mapping[str, float | None] = field(default_factory=dict)
    failed: str = ""

    def value(self, objective: str) -> float | None:
        """What the release is worth in the measure of an objective, where it could be measured."""
        return self.loss if objective == LeastPenalty.name else self.measured.get(objective)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All methods at one promise, the least loss first; those that failed last, with their reason.

    >>> Comparison(k=5, rows=40, guarantees=(), results=(Compared(method="mdav", loss=0.2),)).best.method
    'mdav'
    """

    k: int
    rows: int
    guarantees: tuple[str, ...]
    results: tuple[Compared, ...]

    @property
    def purposes(self) -> tuple[Compared, ...]:
        """The default's releases, one for each objective it searched for: what each gains and costs."""
        return tuple(one for one in self.results if one.method == Progressive.name and one.loss is not None)

    @property
    def best(self) -> Compared | None:
        """The method that lost least, if any kept the promise."""
        return next((result for result in self.results if result.loss is not None), None)

    def facts(self) -> dict[str, object]:
        """As plain values, with the name of the loss."""
        plain = asdict(self)
        for one in plain["results"]:
            measured = one.pop("measured")
            one |= {other.name: measured.get(other.name) for other in OTHERS}
        return {**plain, "loss": "normalized certainty penalty, leaves-1"}


def compare(
    source: Any,
    schema: Schema | str | Path,
    k: int = 5,
    methods: Sequence[Method | type[Method] | str] | Method | type[Method] | str | None = None,
    guarantees: Guarantees = (),
    *,
    suppression: float = 0.0,
    seed: int = 0,
    improve: bool = False,
    blind: bool = False,
    per: str | None = None,
    population: Any = None,
    undeclared: Undeclared = "refuse",
    settings: Mapping[str, Mapping[str, object]] | None = None,
    objectives: Sequence[str] = (),
    progress: Progress = silent,
) -> Comparison:
    """Every registered method that guarantees k (or those named), run on *source* with the same promise.

    A method that cannot keep it is listed with its reason; nothing is left out in silence. *settings* gives
    further parameters per method; *improve* improves the groups of each, *blind* makes them without a look at sensitive
    values. For each of *objectives* ("sse", "ncp=1, marginals=0.5") the default method is run once more, searching for
    that: what it gains there and costs elsewhere is the trade-off.
    Seconds are CPU seconds of the method and its check (the table is prepared once,
    for all), compilation included in the first use of a kernel.

    >>> import polars
    >>> schema = Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})
    >>> found = compare(polars.DataFrame({"age": [20, 21, 30, 31]}), schema, 2, ["mondrian", "mdav"])
    >>> [(one.method, one.groups) for one in found.results]
    [('mdav', 2), ('mondrian', 2)]
    """
    asked = run_settings(
        k=k,
        methods=methods,
        guarantees=guarantees,
        suppression=suppression,
        seed=seed,
        improve=improve,
        blind=blind,
        per=per,
        undeclared=undeclared,
    )
    k = DEFAULT_K if asked.k is None else asked.k
    improving: Effort | None = "default" if asked.improve else None
    chosen = _chosen(asked.methods)
    table = read_table(source, schema, asked.undeclared)
    prepared = prepare(table, per=asked.per, population=population)
    if objectives and not any(isinstance(one, Progressive) for one in chosen):
        objectives = [
            "ncp",
            *(one for one in objectives if one != "ncp"),
        ]  # what the others are traded against
    chosen = [*_with_settings(chosen, settings or {}), *(Progressive(objective=one) for one in objectives)]
    results = []
    for number, method in enumerate(chosen):
        progress(number / len(chosen), method.title)
        purpose = objectives[number - len(chosen)] if number >= len(chosen) - len(objectives) else ""
        goal = goal_for(prepared, method, k, asked.guarantees, asked.suppression, asked.blind)
        results.append(compared(prepared, method, goal, asked.seed, improving, purpose))
    progress(1.0, "done")
    results.sort(
        key=lambda result: (result.loss is None, result.loss or 0.0, result.method, result.objective)
    )
    names = ("k-anonymity", *(guarantee.name for guarantee in asked.guarantees))
    return Comparison(k=k, rows=table.rows, guarantees=names, results=tuple(results))


def compared(
    prepared: Prepared,
    method: Method,
    goal: Goal,
    seed: int = 0,
    improve: Effort | None = None,
    purpose: str = "",
) -> Compared:
    """What *method* makes of a prepared table at *goal*, or why it cannot.

    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import table
    >>> ages = prepare(table(age=[20, 21, 30, 31]))
    >>> compared(ages, Mondrian(), goal_for(ages, Mondrian(), 2)).groups
    2
    """
    start = time.process_time()
    try:
        release = carry_out(prepared, method, goal, seed=seed, improve=improve)
    except VeladoError as error:
        return Compared(method=method.name, objective=purpose, failed=error.what)
    spent = time.process_time() - start
    scores, sizes = measure(release), release.checked.partition.sizes
    risk = (scores.after.people or scores.after.rows).prosecutor
    return Compared(
        method=method.name,
        objective=purpose,
        loss=release.loss,
        groups=int(sizes.size),
        smallest=int(sizes.min()),
        highest=risk.highest,
        mean=risk.mean,
        suppressed=release.suppressed,
        linked=None if scores.linkage is None else scores.linkage.share,
        false_cells=None if scores.false_cells is None else scores.false_cells.share,
        seconds=spent,
        measured={one.name: scores.numbers.get(one.name) for one in OTHERS},
    )


def _chosen(chosen: Sequence[Method] | None) -> Sequence[Method]:
    if chosen is None:
        return [method() for method in METHODS if method.promise == "guaranteed"]
    for method in chosen:
        if method.promise != "guaranteed":
            raise ParameterError(
                say("'{method}' promises no group size.", method=method.name),
                "Methods are compared at the same promise.",
                "Leave it out; its own report says what it does.",
            )
    return chosen


def _with_settings(chosen: Sequence[Method], further: Mapping[str, Mapping[str, object]]) -> Sequence[Method]:
    out = []
    for usual in chosen:
        own: Any = usual  # a settings class, as every method is
        out.append(replace(own, **further.get(usual.name, {})))
    return out


def purposes_named(text: str) -> tuple[str, ...]:
    """The objectives in a comma-separated list, *all* for each but the loss, which is searched for anyway.

    >>> purposes_named("all"), purposes_named(" sse ,marginals"), purposes_named("")
    (('sse', 'discernibility', 'marginals'), ('sse', 'marginals'), ())
    """
    if text.strip() == "all":
        return tuple(one.name for one in OTHERS)
    return tuple(name.strip() for name in text.split(",") if name.strip())
