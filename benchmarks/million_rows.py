"""Does Mondrian stay fast and small on 1,000,000 rows x 8 quasi-identifiers, CSV in to CSV and report out?"""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl

from benchmarks.timing import Row, cpu_seconds, print_rows, run_process, synthetic, velado
from velado.data.encode import encode
from velado.data.io import read_schema, read_table
from velado.randomness import seeded
from velado.release.goal import Goal, silent
from velado.release.guarantees import KAnonymity
from velado.release.methods import Mondrian

SCHEMA = """
[columns.disease]
role = "sensitive"
[columns.sex]
role = "quasi"
[columns.zone]
role = "quasi"
""" + "".join(
    f'[columns.{name}]\nrole = "quasi"\nkind = "numeric"\n'
    for name in ("age", "hours", "income_k", "children", "schooling", "height_cm")
)


def main(rows: int = 1_000_000) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        pl.DataFrame(synthetic(rows)).write_csv(scratch / "big.csv")
        (scratch / "schema.toml").write_text(SCHEMA)
        data = encode(read_table(scratch / "big.csv", read_schema(scratch / "schema.toml")))
        goal = Goal((KAnonymity(10),))
        method = Mondrian()
        seconds = cpu_seconds(lambda: method.anonymize(data, goal, seeded(0, "bench"), silent), repeat=2)
        pl.DataFrame(synthetic(20_000)).write_csv(scratch / "first.csv")
        given = ("--schema", str(scratch / "schema.toml"), "--method", "mondrian", "-k", "10", "-o")
        # As for a user who has run velado before: modules and kernels are compiled, and Python may keep what it compiled.
        kept = {"PYTHONDONTWRITEBYTECODE": ""}
        run_process(velado("anonymize", str(scratch / "first.csv"), *given, str(scratch / "first")), **kept)
        whole = velado("anonymize", str(scratch / "big.csv"), *given, str(scratch / "release"))
        wall, cpu, peak = run_process(whole, **kept)
        size = (scratch / "big.csv").stat().st_size / 2**20
    print_rows(
        f"{rows:,} rows x 8 quasi-identifiers, Mondrian k = 10",
        [
            Row("the method", seconds, bar=1.0),
            Row("CSV in to CSV and report out", cpu, bar=6.0, note=f"{wall:.1f} s; input {size:.0f} MB"),
            Row("peak memory of that process", peak, "MB", 600.0),
        ],
    )


if __name__ == "__main__":
    main()
