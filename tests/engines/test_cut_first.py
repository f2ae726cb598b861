"""Cut first: the table that compressing and memory give, whatever the parts; few questions; what cannot be cut is said."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engines.same_table import KEY, Case, in_memory, random_case, rows_of, verdicts_of

from velado.data.schema import Schema
from velado.engines.duckdb_source import DuckDBSource, of_arrow, open_files
from velado.engines.row_source import FileSink
from velado.errors import VeladoError
from velado.release.guarantees import EntropyLDiversity, LDiversity, TCloseness
from velado.release.methods import Mondrian
from velado.release.sources.source_release import check_written, plan_release, prepare_source

pytest.importorskip("duckdb", reason="duckdb is not installed: velado[duckdb]")

REGIONS = {"north": ["a", "b", "c"], "south": ["d", "e"], "west": ["f", "g", "h", "i"]}
PROMISES: list[tuple[Any, ...]] = [
    (),
    (LDiversity(2),),
    (TCloseness(0.3),),
    (TCloseness(0.35, "hierarchical", "ill"),),
    (EntropyLDiversity(1.8),),
    (TCloseness(0.25, "ordered", "cost"), LDiversity(2, "ill")),
]


def near_unique(seed: int) -> Case:
    """A table whose rows hardly repeat: numbers, a tree, flat categories, blanks, people, two sensitive columns."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(150, 700))
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 90, rows),
            "home": draw.choice([leaf for leaves in REGIONS.values() for leaf in leaves], rows),
            "pay": np.round(draw.lognormal(3, 1, rows), 2),
            "work": draw.choice(["x", "y", "z"], rows, p=[0.9, 0.07, 0.03]),
            "ill": draw.choice(["flu", "cold", "asthma", "gout"], rows),
            "cost": draw.integers(0, 6, rows),
            "who": [f"P{n}" for n in draw.integers(0, rows // int(draw.integers(1, 4)), rows)],
        }
    )
    if seed % 2:
        for name in ("pay", "home", "ill"):
            blank = pl.Series(draw.random(rows) < 0.1)
            frame = frame.with_columns(pl.when(~blank).then(pl.col(name)).alias(name))
    tree = {"lung": ["flu", "cold", "asthma"], "joint": ["gout"]}
    columns: dict[str, dict[str, object]] = {
        "age": {"role": "quasi", "kind": "numeric", **({"weight": 2.0} if seed % 3 == 0 else {})},
        "home": {"role": "quasi", "taxonomy": {"builder": "tree", "nodes": REGIONS}, "missing": "value"},
        "pay": {"role": "quasi", "kind": "numeric", "missing": "suppress" if seed % 5 == 0 else "value"},
        "work": {"role": "quasi"},
        "ill": {"role": "sensitive", "taxonomy": {"builder": "tree", "nodes": tree}},
        "cost": {"role": "sensitive", "kind": "numeric"},
        "who": {"role": "identifier", "kind": "text", "person": True},
    }
    return Case(
        frame=frame,
        schema=Schema.from_dict({"columns": columns}),
        method=Mondrian(categories="ordered") if seed % 4 == 1 else Mondrian(),
        k=int(draw.choice([2, 3, 5, 10])),
        guarantees=PROMISES[seed % len(PROMISES)],
        suppression=0.3,
        per=str(draw.choice(["row", "person"])),
    )


def by_plan(case: Case, source: DuckDBSource, folder: Path, most: int | None) -> tuple[object, ...]:
    """What DuckDB publishes, cut into parts of at most *most* rows, or compressed for None; and the written bytes."""
    path = folder / f"out-{most}.parquet"
    try:
        plan_name = "compress" if most is None else "cut"
        ready = prepare_source(source, case.schema, per=case.per, method=case.method, plan=plan_name)
        if most is not None:
            ready = replace(ready, chosen=replace(ready.chosen, part_rows=most))
        plan = plan_release(
            ready, case.method, k=case.k, guarantees=case.guarantees, suppression=case.suppression
        )
        source.write(plan.recoding(KEY), FileSink(path, "parquet"))
        written = open_files(path, case.schema, folder)
        made = check_written(plan, written)
    except VeladoError as error:
        return (type(error).__name__,)
    table = rows_of(pl.DataFrame(written.sample(written.rows)))
    known = plan.prepared.tuples.distinct, [part.tolist() for part in _sizes(plan)]
    return (
        "held",
        table,
        verdicts_of(made),
        plan.suppressed,
        round(plan.loss, 9),
        known,
        sha256(path.read_bytes()).hexdigest(),
    )


def _sizes(plan: Any) -> tuple[Any, Any]:
    sizes, times = plan.prepared.tuples.sizes
    return np.unique(sizes, return_counts=True) if times is None else (sizes, times)


def compare(cases: list[Case], folder: Path, rows_of_parts: tuple[int, ...]) -> int:
    """All three ways are equal for every case, and for every size of parts; how many tables could be published."""
    held = 0
    for number, case in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        expected = in_memory(case)
        source = of_arrow(case.frame.to_arrow())
        compressed = by_plan(case, source, place, None)
        assert compressed[:5] == expected, number
        for most in rows_of_parts:
            assert by_plan(case, source, place, most) == compressed, (number, most)
        held += expected[0] == "held"
    return held


def test_memory_compress_and_cut_publish_the_same_table(tmp_path: Path) -> None:
    cases = [near_unique(seed) for seed in range(8)]
    assert compare(cases, tmp_path, (1, 60, 10_000)) >= 5


@pytest.mark.slow
def test_they_publish_the_same_of_many_tables(tmp_path: Path) -> None:
    mixed = [replace(random_case(seed), method=Mondrian()) for seed in range(300, 320)]
    assert compare([near_unique(seed) for seed in range(100, 120)] + mixed, tmp_path, (1, 40)) >= 20
