"""What 24 deliveries tell together: released each alone, with groups of values for life, with classes of people for life.

Adult 8,000 and the hospital sample 5,000 people at a time, k = 5, the default method. The hospital is twelve draws of the sample,
each person once. Adult has seven quasi-identifiers, occupation is sensitive; `--columns eight` takes occupation as the eighth and income
as sensitive, `--columns a,b,c` and `--sensitive d` others. Who comes is new; `--back` lets people who left return. `--deliveries`, `--table`, `--churn`,
`--only` thin it; `--large` measures the figures of a million people x 24 releases instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.adult import adult, schema_dict
from benchmarks.timing import data_folder
from velado.data.history_file import create_history, history_held
from velado.data.io import attach_taxonomies, read_schema, read_table
from velado.data.keys import Key
from velado.data.normal import value_codes
from velado.data.partition import Partition
from velado.data.samples import SAMPLE_FOLDER, hospital_schema
from velado.data.samples.make_hospital import SEED, write_hospital
from velado.data.schema import Schema
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
from velado.release.history.classes import Classes, Leavers, shown_together
from velado.release.history.record import Record, told_by
from velado.release.history.together import cells_of, merged_cells, withheld_cells
from velado.release.methods import Progressive
from velado.release.prepare import Prepared, prepare
from velado.release.recoded import Recoded
from velado.release.recoders import Cover
from velado.release.release import release

K = 5
KEY = Key(bytes(range(40)))
METHOD = Progressive()
SEVEN = ["age", "sex", "race", "marital_status", "education", "native_country", "workclass"]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def hospital() -> Table:
    """Twelve draws of the sample, one row for each person: 20,400 people. What is sensitive is the chapter of the diagnosis."""
    frames, table = [], None
    for number in range(12):
        with tempfile.TemporaryDirectory() as folder:
            write_hospital(Path(folder), SEED + number)
            table = read_table(Path(folder) / "hospital.csv", read_schema(hospital_schema()))
        person = table.schema.person
        assert person is not None
        once = table.frame.unique(person.name, keep="first", maintain_order=True)
        frames.append(once.with_columns(pl.col(person.name) + f"/{number}"))
    assert table is not None
    level = pl.read_csv(SAMPLE_FOLDER / "taxonomies" / "cid10.csv", has_header=False, separator=";")
    chapter = {row[0]: row[1] for row in level.iter_rows()}
    frame = pl.concat(frames).with_columns(pl.col("cid10").replace_strict(chapter))
    columns = [
        replace(one, taxonomy=None) if one.name == "cid10" else one for one in table.schema.columns.values()
    ]
    return Table.of(frame, table.schema.with_columns(columns))


def adult_with(columns: Sequence[str], sensitive: str = "occupation") -> Table:
    """Adult with these quasi-identifiers and this sensitive column; "eight": the usual eight, and income."""
    if columns == ["eight"]:
        return adult()
    entries = schema_dict()["columns"]
    for name, entry in entries.items():
        if name in columns and entry["role"] != "quasi":
            entries[name] = {"role": "quasi", "kind": "numeric"}
        elif name == sensitive:
            entries[name] = {"role": "sensitive", "kind": "categorical", "side_door": "accept"}
        elif name not in columns:
            entries[name] = {"role": "other", "kind": "text", "publish": False}
    schema = attach_taxonomies(Schema.from_dict({"columns": entries}), data_folder())
    return read_table(data_folder() / "adult" / "adult_clean.csv", schema)


def presences(people: int, at_a_time: int, count: int, churn: float, back: bool) -> list[Ints]:
    """Who is there in each delivery: a share *churn* leaves and is replaced, by people who were never there or by anybody (*back*)."""
    random = seeded(1, "over time")
    order = random.permutation(people)
    here, came, out = order[:at_a_time], at_a_time, []
    for _ in range(count):
        out.append(np.sort(here))
        moved = round(churn * at_a_time)
        stay = random.permutation(here)[moved:]
        others = np.setdiff1d(order, here) if back else order[came : came + moved]
        assert others.size >= moved, "there are too few people who never came"
        here = np.concatenate([stay, random.permutation(others)[:moved]])
        came += moved
    return out


def delivered(table: Table, here: Ints) -> Prepared:
    """One delivery, read and judged."""
    return prepare(table.with_frame(table.frame[here]), key=KEY, per="row")


def alone(table: Table, present: list[Ints]) -> tuple[str, list[float]]:
    """Today's way: each release judged alone; what is left together, and the loss of each."""
    column = table.schema.sensitive[0]
    codes, values = value_codes(table, column)
    groups = np.full((len(present), table.rows), -1, np.int32)
    shown, losses, certain_alone = [], [], []
    for t, here in enumerate(present):
        made = carry_out(delivered(table, here), METHOD, Goal((KAnonymity(K),)))
        own = made.checked.partition.labels
        groups[t, here[made.kept]] = own
        pairs, found = np.unique(own.astype(np.int64) * values + codes[here[made.kept]], return_counts=True)
        triple = np.stack([pairs // values, pairs % values, found]).astype(np.int32)
        shown.append(Histogram(*triple))
        losses.append(made.loss)
        alike = np.bincount(pairs // values) == 1
        certain_alone.append(float(alike[own].mean()))
    inside, exactly = crowd_of(candidates_in(groups), K), crowd_of(candidates_exactly(groups), K)
    sure = certain_values(groups, shown, values)
    certain = "not looked for" if sure is None else f"{(sure >= 0).sum() / inside.people:.1%}"
    said = f"below k: in {inside.share:.1%}, exactly {exactly.share:.1%}; certain values {certain}"
    said += f" (of one release {np.mean(certain_alone):.1%}); NCP {np.mean(losses):.4f}"
    return said, losses


def values(table: Table, present: list[Ints], most: int, merge: bool) -> str:
    """Groups for life of 20: how many people who came got no values; boxes are made as without them, so that NCP is that of each alone.

    The error is that of counts of a value in a range of two quasi-identifiers, asked of the last delivery: medians over 200
    questions of |answer - true| / true, once with values in the rows and once with the counts of their groups.
    """
    codes, size = value_codes(table, table.schema.sensitive[0])
    known, held, came = np.zeros(table.rows, bool), 0, 0
    home, shares = np.full(table.rows, -1), [np.zeros((0, size))]
    total = 0
    for here in present:
        prepared = delivered(table, here)
        new = np.flatnonzero(~known[here])
        known[here] = True
        came += new.size
        if new.size < 20:
            held += new.size
            continue
        own = codes[here[new]].astype(np.int64)
        cells = cells_of(prepared.seen, new, 20, METHOD, 0)
        if merge:
            cells = merged_cells(prepared.seen, new, cells, own, Fraction(1, most))
        bad = withheld_cells(cells, own, Fraction(1, most))
        held += int(bad[cells].sum())
        home[here[new]] = np.where(bad[cells], -1, cells + total)
        counts = np.zeros((int(cells.max()) + 1, size))
        np.add.at(counts, (cells, own), 1)
        shares.append(counts / counts.sum(axis=1, keepdims=True))
        total += len(counts)
    raw, grouped = _errors(table, present[-1], codes, home, np.concatenate(shares))
    way = "ordinary" if merge else "strict"
    said = f"{way} m = {most}: withheld {held / max(came, 1):.1%} of people; NCP 1.00x (the same boxes)"
    return f"{said}; query error {raw:.3f} with values, {grouped:.3f} with counts"


def _errors(
    table: Table, here: Ints, codes: npt.NDArray[np.integer[Any]], home: Ints, shares: Floats
) -> tuple[float, float]:
    made = carry_out(delivered(table, here), METHOD, Goal((KAnonymity(K),)))
    random, who = seeded(2, "questions"), here[made.kept]
    columns = [(made.data.columns[n], made.recoded.columns[n]) for n in range(len(made.data.columns))]
    columns = [(one, shown) for one, shown in columns if one.size > 2]
    known = home[who] >= 0
    raw: list[float] = []
    grouped: list[float] = []
    of_row = np.where(known[:, None], shares[np.maximum(home[who], 0)], 0.0)
    while len(raw) < 200:
        true, inside = np.ones(len(who), bool), np.ones(len(who))
        for at in random.choice(len(columns), min(2, len(columns)), replace=False):
            one, shown = columns[at]
            low = int(random.integers(0, one.size))
            high = min(low + one.size // 2, one.size - 1)
            own, box = one.codes[made.kept], shown.codes[made.kept]
            first, last = shown.low[box], shown.high[box]
            true &= (own >= low) & (own <= high)
            inside *= np.maximum(np.minimum(high, last) - np.maximum(low, first) + 1, 0) / (last - first + 1)
        value = int(codes[random.choice(who)])
        count = int((true & (codes[who] == value)).sum())
        if count < 0.005 * len(who):
            continue
        raw.append(abs(float(inside[codes[who] == value].sum()) - count) / count)
        # Rows without counts are taken to be like the others in the range.
        answer = float((inside * of_row[:, value]).sum()) * inside.sum() / max(inside[known].sum(), 1e-9)
        grouped.append(abs(answer - count) / count)
    return float(np.median(raw)), float(np.median(grouped))


def people(
    table: Table, present: list[Ints], start: int, losses: list[float], leavers: Leavers = "drop"
) -> str:
    """Classes for life: loss against each release alone, left out counted as wholly lost, and who falls below k."""
    state, groups = Classes.none(), np.full((len(present), table.rows), -1, np.int32)
    own, left_out, stale, rows = [], 0, 0, 0
    for t, here in enumerate(present):
        seen = delivered(table, here).seen
        found = shown_together(
            state,
            here,
            k=K,
            start=start,
            leavers=leavers,
            grouping=lambda at, seen=seen: cells_of(seen, at, start, METHOD, 0),
        )
        state = found.after
        classes = np.concatenate([found.classes, found.stale_classes])
        prepared = delivered(table, np.concatenate([here, found.stale]))
        labels = np.unique(classes, return_inverse=True)[1] - int((classes < 0).any())
        cut = Partition.of(labels.astype(np.int32))
        recoded = Recoded(Cover().publish(prepared.data, cut), cut.kept)
        made = release(prepared, recoded, Goal((KAnonymity(K),), 1.0), METHOD, 0, readings=False)
        who = np.concatenate([here, found.stale])
        groups[t, who[made.kept]] = made.checked.partition.labels
        left_out += made.suppressed
        stale += found.stale.size
        rows += int(made.kept.sum())
        own.append(made.loss)
    count = candidates_exactly if leavers == "keep" else candidates_in
    crowd = crowd_of(count(groups), K)
    ratio = np.mean(own) / np.mean(losses)
    reader = "exactly" if leavers == "keep" else "in"
    said = f"{leavers}, start {start}: {crowd.below} of {crowd.people} below k ({reader}); NCP {ratio:.2f}x"
    return f"{said}; left out {left_out / sum(map(len, present)):.2%}; of people who left {stale / rows:.1%} of rows"


def large(count: int = 1_000_000, releases: int = 24, values: int = 20) -> None:
    """CPU seconds and memory of reading a history and working out its figures: everybody in groups of 5 to 9, a tenth away."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VELADO_STATE"] = folder
        path = Path(folder) / "large.history"
        child = os.fork()  # what making it takes is not measured
        if not child:
            _write_history(path, count, releases, values)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        few = np.zeros((releases, 100), np.int32)
        none = Histogram(*(np.zeros(0, np.int32) for _ in range(3)))
        # What compiled code itself takes is not of people.
        (candidates_in(few), candidates_exactly(few), certain_values(few, [none] * releases, values))
        before, begun = _memory_now(), time.process_time()

        def told(what: str) -> None:
            spent, most = time.process_time() - begun, _memory() - before
            print(
                f"{count:,} people x {releases}, {what}: {spent:.1f} CPU s (bar 15), {most:.0f} MB (bar 130)",
                flush=True,
            )

        with history_held(path, KEY) as file:
            record = Record.of(file.entries)
            told("read")
            own = crowd_of(candidates_in(record.groups), K), crowd_of(candidates_exactly(record.groups), K)
            told(f"readers in and exactly ({own[0].share:.1%} / {own[1].share:.1%} below k)")
            all_told = told_by(record, K)
            told(f"all once more, and certain values ({all_told.certain:,})")


def _write_history(path: Path, count: int, releases: int, values: int) -> None:
    random = seeded(3, "large")
    own = random.integers(0, values, count)
    create_history(path, KEY)
    with history_held(path, KEY) as file:
        for t in range(releases):
            groups = np.empty(count, np.int32)
            groups[random.permutation(count)] = np.arange(count, dtype=np.int32) // 7
            groups[random.random(count) < 0.1] = -1
            here = groups >= 0
            pairs, found = np.unique(groups[here].astype(np.int64) * values + own[here], return_counts=True)
            counts = np.stack([pairs // values, pairs % values, found]).astype("<i4")
            new = 0 if t else count
            said = {
                "kind": "release",
                "new": new,
                "counts": len(found),
                "values": list(map(str, range(values))),
            }
            people = random.integers(0, 2**63, (new, 2)).astype("<u8").tobytes()
            file.append({**said, "table": f"{t}"}, people + groups.tobytes() + counts.tobytes())
            file.append({"kind": "confirmed", "table": f"{t}"})


def _memory_now() -> float:
    """The resident memory, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _memory() -> float:
    """The largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main(given: Sequence[str] = ()) -> None:
    """Print one line for each table, churn and way."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--deliveries", type=int, default=24)
    asked.add_argument("--table", choices=("adult", "hospital"), default=None)
    asked.add_argument("--churn", type=float, default=None)
    asked.add_argument("--columns", type=lambda text: text.split(","), default=SEVEN)
    asked.add_argument("--sensitive", default="occupation")
    asked.add_argument("--back", action="store_true")
    asked.add_argument("--only", choices=("alone", "values", "people"), default=None)
    asked.add_argument("--effort", choices=("fast", "default"), default="default")
    asked.add_argument("--large", action="store_true")
    args = asked.parse_args(list(given))
    if args.large:
        large()
        return
    global METHOD
    METHOD = Progressive(args.effort)
    for name, make, at_a_time in (
        ("adult", partial(adult_with, args.columns, args.sensitive), 8000),
        ("hospital", hospital, 5000),
    ):
        if args.table not in (None, name):
            continue
        table = make()
        table = table.with_schema(replace(table.schema, constant="allow"))
        for churn in (0.1, 0.01) if args.churn is None else (args.churn,):
            present = presences(table.rows, at_a_time, args.deliveries, churn, args.back)
            begun, told = time.process_time(), partial(print, f"{name} {churn:.0%}", flush=True)
            said, losses = alone(table, present)
            told(f"alone: {said} ({time.process_time() - begun:.0f} CPU s)")
            if args.only in (None, "values"):
                told(f"values: {values(table, present, 2, merge=False)}")
                told(f"values: {values(table, present, 3, merge=True)}")
            if args.only not in (None, "people"):
                continue
            told(f"people: {people(table, present, K, losses, 'keep')}")
            told(f"people: {people(table, present, 2 * K, losses, 'keep')}")
            told(f"people: {people(table, present, 2 * K, losses)}")


if __name__ == "__main__":
    main()
