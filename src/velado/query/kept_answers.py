"""By what the ledger knows a question, and how the drawn numbers of its answer are kept there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from velado.errors import LedgerError
from velado.query.budget import Facts
from velado.query.needs import Counts, Tallies, cells_of
from velado.query.plan import QueryPlan

LAYOUT = 1
"""The layout of fingerprints and stored draws; another layout is another question."""


def fingerprints(plan: QueryPlan, versions: Sequence[str], spend: Fraction, extremes: str) -> tuple[str, ...]:
    """One for each version: equal for two questions only if their answers are draws of one distribution over one content of the table.

    SHA-256 over the canonical query, the table's version, the unit, the measure, the spend, how extremes are answered,
    the domains of the keys, and every draw with its grid, sensitivity and scale. Aliases and the confidence of the
    intervals are left out: they change how an answer is shown, not what was drawn. What versions share is written once.
    """
    unit = plan.unit
    form = {
        "layout": LAYOUT,
        "query": plan.query.canonical(),
        "unit": [unit.column, unit.rows, unit.dependence],
        "measure": plan.measure,
        "spend": spend,
        "extremes": extremes,
        "keys": [[key.column, list(key.domain)] for key in plan.keys],
        "draws": [[type(draw.need).__name__, draw] for draw in plan.draws],
    }
    if plan.tree is not None:
        # Which nodes a level has follows from the schema's taxonomy, which no other part names.
        form["tree"] = [parent.tolist() for parent in plan.tree.parents]
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_written)
    # Of the sorted keys the version comes last, so it is the end of the text.
    shared = hashlib.sha256(text[:-1].encode())
    found = []
    for version in versions:
        one = shared.copy()
        one.update(f',"version":{json.dumps(version, ensure_ascii=False)}}}'.encode())
        found.append(one.hexdigest())
    return tuple(found)


def _written(value: Any) -> Any:
    """A frozen value by its fields, and anything else by its exact text."""
    return vars(value) if is_dataclass(value) else str(value)


def entry_text(plan: QueryPlan, spend: Fraction) -> str:
    """The question as the ledger writes it down: its canonical form, and what it was allowed to cost.

    The spend is part of what a question is known by, so whoever asks again at no cost has to name it; or, where an accuracy
    was asked for, that and its chance, from which the same spend follows.
    """
    form = {**json.loads(plan.query.canonical()), "spend": str(spend)}
    if plan.wish is not None:
        form |= {"within": str(plan.wish[0]), "confidence": str(plan.wish[1])}
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def write_draws(drawn: Tallies, analyst: str) -> str:
    """The drawn whole numbers as the ledger keeps them, with who asked first."""
    arrays = [{"shape": list(array.shape), "numbers": array.ravel().tolist()} for array in drawn]
    return json.dumps({"layout": LAYOUT, "analyst": analyst, "drawn": arrays}, separators=(",", ":"))


def _sizes(plan: QueryPlan) -> list[int]:
    """How many cells each draw has."""
    return [cells_of(plan.keys)] * len(plan.draws) if plan.tree is None else list(plan.tree.sizes)


def _rising(places: Counts, cells: int) -> bool:
    """Whether the places of shown keys are cells, each once, in order."""
    return bool(((places >= 0) & (places < cells)).all() and (np.diff(places) > 0).all())


def read_draws(text: str, plan: QueryPlan) -> Tallies:
    """The numbers that `write_draws` wrote, checked against the plan's own shapes."""
    try:
        document: Facts = json.loads(text)
        arrays = document["drawn"]
        sizes = (
            _sizes(plan) if plan.query.least is None else [len(array["numbers"]) for array in arrays[:1]] * 2
        )
        good = document["layout"] == LAYOUT and len(arrays) == len(sizes)
        good = good and all(
            array["shape"][:1] == [size] and prod(array["shape"]) == len(array["numbers"])
            for size, array in zip(sizes, arrays, strict=True)
        )
        if not good:
            raise ValueError
        found = tuple(np.array(array["numbers"], dtype=np.int64).reshape(array["shape"]) for array in arrays)
        if plan.query.least is not None and not _rising(found[0], cells_of(plan.keys)):
            raise ValueError
        return found
    except (ValueError, KeyError, TypeError, OverflowError):
        raise LedgerError(
            "The ledger holds an answer to this question that cannot be read.",
            "Drawing another would tell more than was paid for.",
            "Check the ledger with `velado ledger verify`, or ask with another spend.",
        ) from None
