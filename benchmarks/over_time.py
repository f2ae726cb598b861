"""What 24 deliveries tell together: released each alone, with groups of values for life, with classes of people for life.

Adult 8,000 and the hospital sample 5,000 people at a time, k = 5, the default method. `--deliveries`, `--rows` thin it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.adult import adult
from velado.data.io import read_schema, read_table
from velado.data.keys import Key
from velado.data.partition import Partition
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.table import Table
from velado.randomness import seeded
from velado.release.anonymize import carry_out
from velado.release.goal import Goal
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.history.candidates import (
    Histogram,
    candidates_exactly,
    candidates_in,
    certain_values,
    crowd_of,
)
from velado.release.history.classes import Classes, shown_together
from velado.release.history.together import cells_of, withheld_cells
from velado.release.methods import Progressive
from velado.release.prepare import Prepared, prepare
from velado.release.recoded import Recoded
from velado.release.recoders import Cover
from velado.release.release import release

K = 5
KEY = Key(bytes(range(40)))
METHOD = Progressive()
Ints = npt.NDArray[np.int64]


def hospital() -> Table:
    """The sample, one row for each person."""
    table = read_table(hospital_csv(), read_schema(hospital_schema()))
    person = table.schema.person
    if person is None:
        return table
    return table.with_frame(table.frame.unique(person.name, keep="first", maintain_order=True))


def presences(people: int, at_a_time: int, count: int, churn: float) -> list[Ints]:
    """Who is there in each delivery: a share *churn* leaves and is replaced."""
    random = seeded(1, "over time")
    here, out = np.arange(at_a_time), []
    for _ in range(count):
        out.append(np.sort(here))
        moved = round(churn * at_a_time)
        stay = random.permutation(here)[moved:]
        others = np.setdiff1d(np.arange(people), here)
        here = np.concatenate([stay, random.permutation(others)[:moved]])
    return out


def delivered(table: Table, here: Ints) -> Prepared:
    """One delivery, read and judged."""
    return prepare(table.with_frame(table.frame[here]), key=KEY, per="row")


def alone(table: Table, present: list[Ints]) -> tuple[str, list[float]]:
    """Today's way: each release judged alone; what is left together, and the loss of each."""
    column = table.schema.sensitive[0]
    from velado.data.normal import value_codes

    codes, values = value_codes(table, column)
    groups = np.full((len(present), table.rows), -1, np.int32)
    shown, losses = [], []
    for t, here in enumerate(present):
        made = carry_out(delivered(table, here), METHOD, Goal((KAnonymity(K),)))
        own = made.checked.partition.labels
        groups[t, here[made.kept]] = own
        pairs, found = np.unique(own.astype(np.int64) * values + codes[here[made.kept]], return_counts=True)
        triple = np.stack([pairs // values, pairs % values, found]).astype(np.int32)
        shown.append(Histogram(*triple))
        losses.append(made.loss)
    inside, exactly = crowd_of(candidates_in(groups), K), crowd_of(candidates_exactly(groups), K)
    sure = certain_values(groups, shown, values)
    certain = "not looked for" if sure is None else f"{(sure >= 0).sum() / inside.people:.1%}"
    said = f"below k: in {inside.share:.1%}, exactly {exactly.share:.1%}; certain values {certain}; NCP {np.mean(losses):.4f}"
    return said, losses


def values(table: Table, present: list[Ints]) -> str:
    """Strict groups for life, m = 2, g = 20: how many people who came got no values."""
    from velado.data.normal import value_codes

    codes, _ = value_codes(table, table.schema.sensitive[0])
    known, held, came = np.zeros(table.rows, bool), 0, 0
    for here in present:
        prepared = delivered(table, here)
        new = np.flatnonzero(~known[here])
        known[here] = True
        came += new.size
        if new.size < 20:
            held += new.size
            continue
        cells = cells_of(prepared.seen, new, 20, METHOD, 0)
        bad = withheld_cells(cells, codes[here[new]].astype(np.int64), Fraction(1, 2))
        held += int(bad[cells].sum())
    return f"withheld {held / max(came, 1):.1%} of people; boxes are those of each release alone: NCP 1.00x"


def people(
    table: Table, present: list[Ints], start: int, losses: list[float], leavers: Literal["drop"] = "drop"
) -> str:
    """Classes for life: loss against each release alone, left out counted as wholly lost, and who falls below k."""
    state, groups = Classes.none(), np.full((len(present), table.rows), -1, np.int32)
    own, left_out = [], 0
    for t, here in enumerate(present):
        prepared = delivered(table, here)
        found = shown_together(
            state,
            here,
            k=K,
            start=start,
            leavers=leavers,
            grouping=lambda at, seen=prepared.seen: cells_of(seen, at, start, METHOD, 0),
        )
        state = found.after
        labels = np.unique(found.classes, return_inverse=True)[1] - int((found.classes < 0).any())
        cut = Partition.of(labels.astype(np.int32))
        recoded = Recoded(Cover().publish(prepared.data, cut), cut.kept)
        made = release(prepared, recoded, Goal((KAnonymity(K),), 1.0), METHOD, 0, readings=False)
        groups[t, here[made.kept]] = made.checked.partition.labels
        left_out += made.suppressed
        own.append(made.loss)
    inside = crowd_of(candidates_in(groups), K)
    ratio = np.mean(own) / np.mean(losses)
    total = sum(map(len, present))
    return f"start {start}: {inside.below} below k of {inside.people}; NCP {ratio:.2f}x; left out {left_out / total:.2%}"


def main(given: Sequence[str] = ()) -> None:
    """Print one line for each table, churn and way."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--deliveries", type=int, default=24)
    asked.add_argument("--table", choices=("adult", "hospital"), default=None)
    asked.add_argument("--churn", type=float, default=None)
    args = asked.parse_args(list(given))
    for name, make, at_a_time in (("adult", adult, 8000), ("hospital", hospital, 5000)):
        if args.table not in (None, name):
            continue
        table = make()
        table = table.with_schema(replace(table.schema, constant="allow"))
        for churn in (0.1, 0.01) if args.churn is None else (args.churn,):
            present = presences(table.rows, min(at_a_time, table.rows // 2), args.deliveries, churn)
            begun = time.process_time()
            said, losses = alone(table, present)
            print(f"{name} {churn:.0%} alone: {said} ({time.process_time() - begun:.0f} CPU s)", flush=True)
            print(f"{name} {churn:.0%} values: {values(table, present)}", flush=True)
            print(f"{name} {churn:.0%} people: {people(table, present, 2 * K, losses)}", flush=True)


if __name__ == "__main__":
    main()
