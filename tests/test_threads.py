"""No answer depends on the order in which threads end: what one thread gives, several give."""

import os
import subprocess
import sys

import pytest

# Every other test leaves Polars one thread (conftest.py): this is where it has several.
RUN = """
import numpy as np
import polars as pl
from velado.data.inspect import exposure
from velado.data.io import read_table, schema_from
from velado.data.samples import hospital_csv, hospital_schema
from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.measures.measured import measure
from velado.release.anonymize import anonymize
from velado.release.guarantees import LDiversity
from velado.release.methods import GFKMC, KMember, Mondrian, Progressive

print(pl.thread_pool_size())
hospital = read_table(hospital_csv(), schema_from(hospital_schema()))
for method in (Mondrian(), Progressive("fast"), KMember(), GFKMC()):
    release = anonymize(hospital, hospital.schema, method, k=5)
    print(method.name, release.loss, release.facts()["how"], release.frame.write_csv())
    print(measure(release).to_dict())

# Far more rows than one thread takes at a time.
draw = np.random.default_rng(0)
rows = 150_000
frame = pl.DataFrame(
    {
        "age": draw.integers(18, 95, rows),
        "town": [f"Town {n}" for n in draw.geometric(0.05, rows)],
        "weight": np.round(draw.normal(70, 12, rows), 1),
        "illness": [f"i{n}" for n in draw.integers(0, 30, rows)],
    }
)
quasi = {"age": Column("age", "quasi", "numeric"), "town": Column("town", "quasi"), "weight": Column("weight", "quasi", "numeric")}
large = Table.of(frame, Schema({**quasi, "illness": Column("illness", "sensitive")}))
release = anonymize(large, large.schema, Mondrian(), (LDiversity(2),), k=10)
print(release.loss, release.frame.write_csv())
print(exposure(large, list(quasi), None))
"""


def told(threads: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "POLARS_MAX_THREADS": str(threads)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert int(first) == threads
    return lines


@pytest.mark.slow
def test_several_threads_give_what_one_gives() -> None:
    one, four = told(1), told(4)
    assert len(one) > 150_000 and one == four
