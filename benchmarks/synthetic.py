"""What are synthetic tables of Adult worth, what do they cost, and how do other programs' and k-anonymous ones stand beside them?

Two-way: half the summed difference of shares in the table of two columns, mean over all pairs; ages in 32 ranges, so that everybody is
held to the same cells. `--part adult,large,models,equal,peers` thins it. Peers run by the Python of an environment of their own, if it is named:
`--opendp PYTHON` (pip install "opendp[mbi,polars]"), `--smartnoise PYTHON` (pip install smartnoise-synth), each with at most `--limit` CPU seconds.
They are handed the same cells, and one run of each is told, be it good or bad luck.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.timing import Row, data_folder, print_rows
from velado.data.io import read_table
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.measures.utility.two_way import TwoWay, two_way
from velado.query.budget import Budget
from velado.query.synthetic.axes import Axis, axes_of
from velado.query.synthetic.synthesize import Synthetic, Wanted, synthesize, unpaid
from velado.query.unit import Unit
from velado.randomness import seeded
from velado.release.anonymize import anonymize
from velado.study.synthetic_trial import _codes, _one_value_each, try_synthetic

RHOS = ("0.5", "0.1", "0.02")
BAR, SECONDS, LARGE_SECONDS = 0.040, 5.0, 30.0
TARGET = "salary-class"
PARTS = ("adult", "large", "models", "equal", "peers")
PEERS = {"opendp": ("MST", "AIM"), "smartnoise": ("mst", "aim")}
CROWDS = (5, 25, 100, 400)
SPENDS = (0.0001, 0.0005, 0.002, 0.01, 0.05, 0.2, 0.5, 2, 8, 32, 128)


def adult() -> tuple[pl.DataFrame, Schema]:
    """The nine columns that ARX uses. The census' own lists of values are public; here they are taken from the file."""
    frame = pl.read_csv(data_folder() / "adult" / "adult_arx.csv", separator=";", infer_schema=False)
    columns = {
        name: Column(
            name,
            "sensitive" if name == TARGET else "quasi",
            values=tuple(sorted(frame[name].unique())),
            missing="refuse",
        )
        for name in frame.columns
    } | {"age": Column("age", "quasi", "numeric", bounds=(17, 90), step=1.0, missing="refuse")}
    return frame, Schema({name: columns[name] for name in frame.columns})


def large(rows: int, columns: int = 15, seed: int = 0) -> tuple[pl.DataFrame, Schema]:
    """A made-up table: twelve kinds of people, whose chances differ in every column; two to forty values each."""
    random = seeded(seed, "a large synthetic benchmark")
    kind = random.choice(12, rows, p=random.dirichlet(np.ones(12)))
    sizes = [(2, 3, 5, 7, 9, 16, 40)[at % 7] for at in range(columns)]
    cells = {}
    for at, size in enumerate(sizes):
        chances = np.cumsum(random.dirichlet(np.full(size, 0.3), 12), axis=1)
        code = (random.random((rows, 1)) > chances[kind]).sum(axis=1).clip(0, size - 1)
        cells[f"c{at}"] = pl.Series([f"v{v}" for v in range(size)]).gather(code)
    schema = Schema({
        name: Column(name, "quasi", values=tuple(f"v{v}" for v in range(size)), missing="refuse")
        for name, size in zip(cells, sizes, strict=True)
    })  # fmt: skip
    return pl.DataFrame(cells), schema


def compared(frame: pl.DataFrame, made: pl.DataFrame, axes: Sequence[Axis]) -> TwoWay:
    """How far the pairs of columns of *made* are from those of *frame*."""
    true, shown = ([axis.codes(rows[axis.column], ()) for axis in axes] for rows in (frame, made))
    return two_way(true, shown, [axis.size for axis in axes])


def timed(frame: pl.DataFrame, schema: Schema, **wanted: Any) -> tuple[Synthetic, float]:
    """A synthetic table and its CPU seconds."""
    begun = time.process_time()
    made = synthesize(frame, schema, **wanted)
    return made, time.process_time() - begun


def outside(made: pl.DataFrame, schema: Schema) -> int:
    """Values that were not declared."""
    found = 0
    for name, series in zip(made.columns, made.get_columns(), strict=True):
        column = schema.columns[name]
        if column.values is not None:
            found += int((~series.drop_nulls().is_in(list(column.values))).sum())
        else:
            assert column.bounds is not None
            low, high = column.bounds
            found += int((~series.drop_nulls().cast(pl.Float64).is_between(low, high)).sum())
    return found


def on_adult() -> None:
    """Fidelity and time on Adult, three times at rho 0.5."""
    frame, schema = adult()
    axes, fine = axes_of(schema, Unit()), axes_of(schema, Unit(), bins=74)
    rows = []
    synthesize(frame.head(100), schema, rho="0.5")
    for rho in (RHOS[0], *RHOS):
        made, seconds = timed(frame, schema, rho=rho)
        near = compared(frame, made.frame, axes)
        note = f"worst pair {near.worst:.3f}, single columns {near.one_way:.4f}, on single years {compared(frame, made.frame, fine).mean:.4f}"
        bar = BAR if rho == RHOS[0] else None
        rows += [
            Row(
                f"Adult, 9 columns, rho {rho} ({made.how.way})",
                round(near.mean, 4),
                "two-way",
                bar,
                note=note,
            ),
            Row(f"Adult, rho {rho}: the time", round(seconds, 2), "CPU s", SECONDS),
            Row(f"Adult, rho {rho}: values outside the domain", outside(made.frame, schema), "cells", 0),
        ]
    for method in ("tree", "microaggregate"):
        made, seconds = timed(frame, schema, rho="0.5", method=method)
        near = compared(frame, made.frame, axes)
        rows.append(
            Row(f"Adult, rho 0.5, {method}", round(near.mean, 4), "two-way", note=f"{seconds:.1f} CPU s")
        )
        rows.append(Row(f"Adult, {method}: values outside", outside(made.frame, schema), "cells", 0))
    print_rows("Synthetic tables of Adult", rows)


def on_a_large_table() -> None:
    """A million rows of fifteen columns."""
    frame, schema = large(1_000_000)
    made, seconds = timed(frame, schema, rho="0.5")
    near = compared(frame, made.frame, axes_of(schema, Unit()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [
        Row("10^6 rows x 15 columns, rho 0.5", round(seconds, 1), "CPU s", LARGE_SECONDS, note=made.how.way),
        Row("the same: two-way", round(near.mean, 4), "two-way", note=f"worst pair {near.worst:.3f}"),
        Row("the same: values outside the domain", outside(made.frame, schema), "cells", 0),
        Row("the same: peak of the whole process", round(peak), "MB"),
    ]
    print_rows("A synthetic table of a million rows", rows)


def models() -> None:
    """What the owner's page prints: pairs, models taught with each table and asked about true rows, the membership attack."""
    frame, schema = adult()
    for rho in ("0.5", "0.02"):
        tried = try_synthetic(read_table(frame, schema), Budget.rho(rho), Unit(), Wanted(), TARGET)
        rows = []
        for one in tried.tables:
            if one.fidelity is None or one.attack is None:
                rows.append(Row(one.name, float("nan"), note=one.failed))
                continue
            areas = ", ".join(f"{name} {area:.3f}" for name, area in one.areas.items() if area is not None)
            attack = f"membership {one.attack.area:.3f} (null {one.attack.null_low:.3f} to {one.attack.null_high:.3f})"
            rows.append(Row(one.name, round(one.fidelity.mean, 4), "two-way", note=f"AUC: {areas}; {attack}"))
        print_rows(f"Adult, 70 % of the rows, rho {rho}, tested on the others", rows)


def at_equal() -> None:
    """The synthetic and the microaggregated table at equal spend, and the spend that each needs for an equal loss."""
    frame, schema = adult()
    table = read_table(frame, schema)
    axes = axes_of(schema, Unit())
    loss: dict[str, dict[float, float]] = {"auto": {}, "microaggregate": {}}
    rows = []
    for method, found in loss.items():
        for spend in SPENDS:
            asked = Budget.rho(str(spend))
            made = unpaid(table, axes, Wanted(method=method), asked, Unit())  # type: ignore[arg-type]
            found[spend] = compared(frame, made, axes).mean
            rows.append(
                Row(f"rho {spend}, {method}", round(found[spend], 4), "two-way", note=ages(frame, made))
            )
    print_rows("Adult at equal spend", rows)
    rows = []
    for k in CROWDS:
        drawn = crowd(table, axes, k)
        lost = compared(frame, drawn, axes).mean
        needs = {
            method: next((spend for spend, own in sorted(found.items()) if own <= lost), None)
            for method, found in loss.items()
        }
        note = "; ".join(
            f"{method} is as near at rho {spend}" if spend is not None else f"{method} at none of these"
            for method, spend in needs.items()
        )
        rows.append(
            Row(f"k-anonymous, k = {k}", round(lost, 4), "two-way", note=f"{ages(frame, drawn)}; {note}")
        )
    print_rows(
        "Adult at equal loss: the least of these spends at which a table is as near as a k-anonymous one",
        rows,
    )


def ages(frame: pl.DataFrame, made: pl.DataFrame) -> str:
    """How far the mean age of each workclass is off, in years: the mean over true rows."""
    means = []
    for rows in (frame, made):
        age = pl.col("age").cast(pl.Float64).mean()
        means.append(rows.drop_nulls(["age", "workclass"]).group_by("workclass").agg(age, pl.len()))
    both = means[0].join(means[1], on="workclass", how="left", suffix="_made")
    usual = frame["age"].cast(pl.Float64).mean()
    off = (both["age"] - both["age_made"].fill_null(usual)).abs()
    return f"mean age of a row's workclass off by {float((off * both['len']).sum()) / frame.height:.2f} years"


def crowd(table: Table, axes: Sequence[Axis], k: int) -> pl.DataFrame:
    """A k-anonymous table in which every published range became one of its values, by lot."""
    release = anonymize(table, table.schema, "mondrian", k=k)
    return _one_value_each(release.aligned, table, axes, seeded(0, "synthetic at equal loss", str(k)))


def beside_peers(pythons: dict[str, str], limit: int, rhos: Sequence[str]) -> None:
    """Other programs on the same cells; one that did not end is not asked again."""
    frame, schema = adult()
    axes = axes_of(schema, Unit())
    true = _codes(frame, axes, read_table(frame, schema))
    sizes = [axis.size for axis in axes]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pl.DataFrame({axis.column: code for axis, code in zip(axes, true, strict=True)}).write_csv(
            place / "cells.csv"
        )
        (place / "sizes.json").write_text(
            json.dumps({axis.column: axis.size for axis in axes}), encoding="utf-8"
        )
        ended = dict.fromkeys([(peer, way) for peer, ways in PEERS.items() for way in ways], True)
        for rho in rhos:
            begun = time.process_time()
            made = synthesize(frame, schema, rho=rho)
            spent = time.process_time() - begun
            near = compared(frame, made.frame, axes)
            rows.append(Row(f"velado, rho {rho}", round(near.mean, 4), "two-way", note=f"{spent:.1f} CPU s"))
            for peer, method in ended:
                if peer in pythons and ended[peer, method]:
                    rows.append(peer_row(place, pythons[peer], peer, method, rho, limit, true, sizes))
                    ended[peer, method] = rows[-1].measured == rows[-1].measured
                    print(rows[-1], flush=True)
    print_rows("Synthetic tables of Adult beside other programs", rows)


def peer_row(
    place: Path, python: str, peer: str, method: str, rho: str, limit: int, true: list[Any], sizes: list[int]
) -> Row:
    """One run of a peer, or why it did not end."""
    run = Path(__file__).parent / "peers" / f"synthetic_{peer}_run.py"
    out = place / f"{peer}-{method}.csv"
    out.unlink(missing_ok=True)
    words = [python, str(run), str(place / "cells.csv"), str(place / "sizes.json"), method, rho, str(out)]
    done = subprocess.run(
        ["bash", "-c", f'ulimit -t {limit}; exec "$@"', "peer", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    what = f"{peer} {method.upper()}, rho {rho}"
    if done.returncode != 0 or not out.exists():
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        why = f"not finished in {limit} CPU s" if done.returncode < 0 else last.strip()[:200]
        return Row(what, float("nan"), "two-way", note=why)
    said = json.loads(done.stdout.splitlines()[-1])
    near = told_apart(out, true, sizes)
    sampled = out.with_name(out.name + ".sampled")
    lot = f"rows drawn by lot {told_apart(sampled, true, sizes).mean:.4f}; " if sampled.exists() else ""
    return Row(
        what,
        round(near.mean, 4),
        "two-way",
        note=f"{lot}single columns {near.one_way:.3f}; {said['seconds']:.1f} CPU s; {said['told']}".rstrip(
            "; "
        ),
    )


def told_apart(out: Path, true: list[Any], sizes: list[int]) -> TwoWay:
    """How far the pairs of a peer's table are from the true ones."""
    made = pl.read_csv(out)
    # A peer may have a blank where the table has none: one more cell, in which no true row is.
    shown = [
        made[name].cast(pl.Int32).fill_null(size).to_numpy()
        for name, size in zip(made.columns, sizes, strict=True)
    ]
    return two_way(true, shown, [size + 1 for size in sizes])


def main(given: Sequence[str] = ()) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default=",".join(PARTS[:-1]))
    parser.add_argument("--opendp")
    parser.add_argument("--smartnoise")
    parser.add_argument("--limit", type=int, default=900)
    parser.add_argument("--rho", default=",".join(RHOS), help="for peers")
    asked = parser.parse_args(list(given))
    parts = asked.part.split(",")
    pythons = {name: getattr(asked, name) for name in ("opendp", "smartnoise") if getattr(asked, name)}
    if "adult" in parts:
        on_adult()
    if "models" in parts:
        models()
    if "equal" in parts:
        at_equal()
    if "large" in parts:
        on_a_large_table()
    if "peers" in parts or pythons:
        beside_peers(pythons, asked.limit, asked.rho.split(","))


if __name__ == "__main__":
    main()
