"""What does a release of 10^7 or 10^8 rows cost, Parquet to Parquet with report, by DuckDB?

`python -m benchmarks lakes --rows 100000000` runs one size; without it 10^7 rows, by Mondrian and by progressive.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import Row, print_head, print_lines, run_process, velado

PART = 2_000_000
BARS = {10**7: (30.0, 1536.0), 10**8: (250.0, 4096.0)}
"""CPU seconds and megabytes at most, by rows."""
OTHERS = """
[columns.illness]
role = "sensitive"
[columns.cost]
role = "other"
kind = "numeric"
[columns.days]
role = "other"
kind = "numeric"
"""


def _texts(numbers: np.ndarray) -> pl.Series:
    return pl.Series(numbers).cast(pl.String).str.zfill(2)


def _others(rng: np.random.Generator, rows: int) -> dict[str, object]:
    return {
        "illness": _texts(rng.integers(0, 20, rows)),
        "cost": np.round(rng.gamma(2, 500, rows)).astype(np.int32),
        "days": rng.integers(0, 30, rows).astype(np.int16),
    }


def even(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Five quasi-identifiers with 230,400 possible tuples, all about equally frequent."""
    return pl.DataFrame(
        {
            "age": rng.integers(0, 100, rows).astype(np.int16),
            "sex": _texts(rng.integers(0, 2, rows)),
            "town": _texts(rng.integers(0, 48, rows)),
            "job": _texts(rng.integers(0, 8, rows)),
            "status": _texts(rng.integers(0, 3, rows)),
            **_others(rng, rows),
        }
    )


def skewed(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Five quasi-identifiers for taxonomies, skewed: some million tuples in 10^7 rows, most of them rare."""
    age = np.clip(rng.gamma(6, 7, rows), 0, 99).astype(int)
    return pl.DataFrame(
        {
            "age": _texts(age),
            "sex": _texts(rng.integers(0, 2, rows)),
            "town": _texts(rng.zipf(1.5, rows) % 64),
            "job": _texts((rng.zipf(1.6, rows) + age // 30) % 16),
            "school": _texts(np.clip(rng.normal(9, 3, rows), 0, 15).astype(int)),
            **_others(rng, rows),
        }
    )


TREES = {"age": (100, (5, 10, 50)), "town": (64, (4, 16)), "job": (16, (4,)), "school": (16, (2, 4, 8))}
"""Values and widths of the levels of each taxonomy."""


def plain_schema(folder: Path) -> Path:
    """The schema of `even`."""
    quasi = "".join(f'[columns.{name}]\nrole = "quasi"\n' for name in ("sex", "town", "job", "status"))
    path = folder / "even.toml"
    path.write_text(f'[columns.age]\nrole = "quasi"\nkind = "numeric"\n{quasi}{OTHERS}')
    return path


def tree_schema(folder: Path) -> Path:
    """The schema of `skewed`, its taxonomies beside it."""
    quasi = '[columns.sex]\nrole = "quasi"\n'
    for name, (values, widths) in TREES.items():
        levels = [
            ";".join([f"{at:02d}", *(f"{name} {width}: {at // width}" for width in widths), "*"])
            for at in range(values)
        ]
        (folder / f"{name}.csv").write_text("\n".join(levels) + "\n")
        quasi += f'[columns.{name}]\nrole = "quasi"\nkind = "categorical"\ntaxonomy = "{name}.csv"\n'
    path = folder / "skewed.toml"
    path.write_text(quasi + OTHERS)
    return path


def measured(folder: Path, made: str, rows: int, method: str, bars: tuple[float, float]) -> list[Row]:
    """One release of *rows* rows of `even` or `skewed`."""
    lake = folder / made
    lake.mkdir()
    for at in range(0, rows, PART):
        rng = np.random.default_rng(at)
        part = min(PART, rows - at)
        (even if made == "even" else skewed)(rng, part).write_parquet(lake / f"part{at // PART:03d}.parquet")
    schema = (plain_schema if made == "even" else tree_schema)(folder)
    out = folder / f"out {made}"
    memory = ("--memory", "3GB") if rows > 10**7 else ()
    given = ["--schema", str(schema), "--method", method, "-k", "5", "-o", str(out), *memory]
    wall, cpu, peak = run_process(velado("anonymize", f"{lake}/*.parquet", *given))
    loss = json.loads((out / "release" / "manifest.json").read_text())["metrics"]["ncp"]["overall"]
    what = f"{rows:,} rows, {made}, {method}"
    return [
        Row(what, cpu, bar=bars[0], note=f"{wall:.0f} s; information loss {loss:.3f}"),
        Row(f"{what}: peak memory", peak, "MB", bars[1]),
    ]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    given = list(arguments)
    rows = int(given[given.index("--rows") + 1]) if "--rows" in given else None
    print_head("Lakes of Parquet files, DuckDB, k = 5")
    with tempfile.TemporaryDirectory() as name:
        size = rows or 10**7
        bars = BARS.get(size, (30.0 * size / 10**7, 4096.0))
        print_lines(measured(Path(name), "even", size, "mondrian", bars))
        if rows is None:
            print_lines(measured(Path(name), "skewed", size, "progressive", (40.0, 1536.0)))


if __name__ == "__main__":
    main(sys.argv[1:])
