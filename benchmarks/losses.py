"""Is the default's loss the lowest of every method, on every table, and what does it cost?

NCP at k = 5 unless said, CPU seconds of the method alone, after one run that compiles. Figures of others are published ones:
ARX's local recoding on Adult's nine columns. sdcMicro's MDAV minimises another loss, and velado's MDAV equals it, so that
its groups stand here under `mdav`. VELADO_BENCH_HIGH=1 adds high effort, VELADO_BENCH_MILLION=1 a million rows; `--own` prints ten made-up tables instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.adult import adult_nine
from benchmarks.methods_beside_peers import ncp, run
from benchmarks.own_tables import OWN, own_table
from benchmarks.timing import Row, data_folder, print_rows, synthetic
from velado.data.encode import EncodedTable, encode
from velado.data.io import attach_taxonomies, read_table, schema_from
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Schema
from velado.release.methods import (
    GFKMC,
    MDAV,
    KMember,
    Mondrian,
    NearestNeighbours,
    Progressive,
    TopDownGreedy,
)
from velado.release.methods.progressive.lower_bound import lower_bound

_NUMERIC: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "census": ("sdc/casc_census.csv", ()),
    "tarragona": ("sdc/tarragona.csv", ()),
    "wine": ("regression/winequality-white.csv", ()),
    "cahousing": (
        "uci/cahousing.csv",
        ("longitude", "latitude", "housing_median_age", "median_income", "median_house_value"),
    ),
    "credit 8": (
        "uci/credit_card_clients.csv",
        ("LIMIT_BAL", "AGE", *(f"BILL_AMT{n}" for n in range(1, 7))),
    ),
    "credit 23": ("uci/credit_card_clients.csv", ()),
}


def _named(path: str, columns: Mapping[str, Mapping[str, object]], separator: str) -> EncodedTable:
    source = data_folder() / path
    frame = pl.read_csv(source, separator=separator, infer_schema=False, null_values=["", "NaN", "nan", "NA"])
    frame = frame.select(list(columns))
    schema = Schema.from_dict({"columns": {name: dict(entry) for name, entry in columns.items()}})
    return encode(read_table(frame, attach_taxonomies(schema, data_folder())))


def _separator(path: str) -> str:
    first = (data_folder() / path).open().readline()
    return ";" if first.count(";") > first.count(",") else ","


def _numeric(name: str) -> EncodedTable:
    path, chosen = _NUMERIC[name]
    separator = _separator(path)
    header = pl.read_csv(data_folder() / path, separator=separator, n_rows=1, infer_schema=False).columns
    wanted = chosen or (header[1:24] if path.startswith("uci") else header)
    return _named(path, {column: {"role": "quasi", "kind": "numeric"} for column in wanted}, separator)


def _with_hierarchies(name: str) -> EncodedTable:
    """Every column but the number of the row, by its hierarchy where there is one, else as a flat set of values."""
    path = f"uci/{name}.csv"
    columns: dict[str, dict[str, object]] = {}
    for column in pl.read_csv(data_folder() / path, separator=";", n_rows=1, infer_schema=False).columns[1:]:
        columns[column] = {"role": "quasi", "kind": "categorical"}
        hierarchy = f"uci/hierarchies/{name}_hierarchy_{column}.csv"
        if (Path(data_folder()) / hierarchy).exists():
            columns[column]["taxonomy"] = hierarchy
    return _named(path, columns, ";")


@cache
def table(name: str) -> EncodedTable:
    """One of the tables, encoded."""
    if name in _NUMERIC:
        return _numeric(name)
    if name in ("cmc", "mgm"):
        return _with_hierarchies(name)
    if name in OWN:
        return own_table(name)
    if name == "adult 9":
        return encode(adult_nine())
    return encode(read_table(hospital_csv(), schema_from(hospital_schema())))


BARS = (
    ("census", 5, 0.0965, 4.0),
    ("tarragona", 5, 0.0352, 4.0),
    ("wine", 5, 0.0640, 4.0),
    ("cahousing", 5, 0.0381, 6.0),
    ("credit 8", 5, 0.0166, 4.0),
    ("credit 23", 5, 0.0273, 8.0),
    ("hospital", 5, 0.1190, 3.0),
    ("cmc", 5, 0.2026, 3.0),
    ("mgm", 5, 0.0930, 3.0),
    ("adult 9", 5, 0.0497, 5.0),
    ("adult 9", 10, 0.0740, 5.0),
    ("adult 9", 100, 0.1900, 5.0),
)
FAST = (("adult 9", 5, 0.0505, 0.4), ("adult 9", 10, 0.0745, 0.4), ("adult 9", 100, 0.1904, 0.6))
HIGH = (
    ("adult 9", 5, 0.0491, 40.0),
    ("adult 9", 50, 0.1460, 40.0),
    ("cmc", 50, 0.4550, 40.0),
    ("wine", 5, 0.0617, 40.0),
    ("cahousing", 5, 0.0370, 40.0),
    ("census", 5, 0.0954, 40.0),
)
_PEER = {("adult 9", 5): 0.0591, ("adult 9", 10): 0.0830, ("adult 9", 100): 0.1970}
OTHERS = (KMember, MDAV, Mondrian, NearestNeighbours, TopDownGreedy, GFKMC)


def measured(name: str, k: int, method: object) -> tuple[float, float]:
    """Loss and CPU seconds of one run of the method."""
    data = table(name)
    start = time.process_time()
    made = run(method, data, k=k)
    return ncp(data, made), time.process_time() - start


def _rows(effort: str, bars: tuple[tuple[str, int, float | None, float], ...], beside: bool) -> list[Row]:
    out = []
    for name, k, most, seconds in bars:
        loss, spent = measured(name, k, Progressive(effort=effort))
        others = {kind.name: measured(name, k, kind())[0] for kind in OTHERS} if beside else {}
        note = ", ".join(f"{other} {value:.4f}" for other, value in others.items())
        peer = _PEER.get((name, k))
        label = f"{name}, {effort}, k = {k}"
        out.append(Row(f"{label}: NCP", loss, "", most, peer, "ARX local recoding" if peer else "", note))
        out.append(Row(f"{label}: time", spent, "CPU s", seconds))
    return out


def _own() -> list[Row]:
    """Ten tables that nothing was tuned on: the default beside the best other guaranteed method."""
    out = []
    for name in OWN:
        loss, spent = measured(name, 5, Progressive())
        others = {kind.name: measured(name, 5, kind())[0] for kind in OTHERS}
        best = min(others, key=lambda other: others[other])
        data = table(name)
        note = f"{data.rows:,} x {len(data.columns)}, {spent:.1f} CPU s"
        out.append(Row(f"{name}: NCP", loss, "", 1.005 * others[best], others[best], best, note))
    return out


def _bounds() -> list[Row]:
    """How far above what no grouping can undercut the default is at most."""
    out = []
    for k, bars in (
        (3, {"census": 0.04, "tarragona": 0.05, "hospital": 0.09, "wine": 0.12}),
        (5, {"census": 0.4, "wine": 0.4, "cahousing": 0.4}),
    ):
        for name, most in bars.items():
            loss, _ = measured(name, k, Progressive())
            start = time.process_time()
            bound = lower_bound(table(name), k)
            spent = time.process_time() - start
            above = loss / bound - 1 if bound > 0 else np.inf
            note = f"NCP {loss:.4f}, bound {bound:.4f} in {spent:.1f} CPU s"
            out.append(Row(f"{name}, k = {k}: above the best possible at most", above, "", most, note=note))
    return out


def _million() -> list[Row]:
    made = synthetic(1_000_000)
    frame = pl.DataFrame({name: values for name, values in made.items() if name != "disease"})
    kinds = {name: "categorical" if name in ("zone", "sex") else "numeric" for name in frame.columns}
    schema = Schema.from_dict({"columns": {n: {"role": "quasi", "kind": kind} for n, kind in kinds.items()}})
    data = encode(read_table(frame, schema))
    start, wall = time.process_time(), time.perf_counter()
    loss = ncp(data, run(Progressive(), data))
    return [
        Row("1,000,000 x 8 mixed, default, k = 5: NCP", loss, ""),
        Row("the same: time", time.process_time() - start, "CPU s", 60.0),
        Row("the same: time by the clock", time.perf_counter() - wall, "s", 40.0),
    ]


def main() -> None:
    """Print the tables."""
    measured("hospital", 5, Progressive())  # compiles
    if "--own" in sys.argv:
        print_rows("Ten tables of our own", _own())
        return
    parts: list[tuple[str, Callable[[], list[Row]]]] = [
        ("The default, and every other method", lambda: _rows("default", BARS, beside=True)),
        ("Fast", lambda: _rows("fast", FAST, beside=False)),
        ("How far from the best possible", _bounds),
    ]
    if os.environ.get("VELADO_BENCH_HIGH"):
        parts.append(("High", lambda: _rows("high", HIGH, beside=False)))
    if os.environ.get("VELADO_BENCH_MILLION"):
        parts.append(("A million rows", _million))
    for title, rows in parts:
        print_rows(title, rows())


if __name__ == "__main__":
    main()
