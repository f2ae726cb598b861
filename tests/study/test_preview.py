"""A preview is drawn by its seed, says what it looked at, and tells on all rows what the run itself tells."""

import numpy as np
import polars as pl
import pytest

from velado.data.io import read_table
from velado.data.schema import Schema
from velado.measures.measured import measure
from velado.release.anonymize import anonymize
from velado.study.compare import compare
from velado.study.preview import draw_sample, preview, preview_many

DRAW = np.random.default_rng(2)
FRAME = pl.DataFrame(
    {
        "who": [f"p{n}" for n in DRAW.integers(0, 400, 900)],
        "age": DRAW.integers(18, 90, 900),
        "sex": DRAW.choice(["F", "M"], 900),
        "ill": DRAW.choice(["a", "b", "c"], 900),
    }
)
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "who": {"role": "identifier", "kind": "text", "person": True},
            "age": {"role": "quasi", "kind": "numeric"},
            "sex": {"role": "quasi"},
            "ill": {"role": "sensitive"},
        }
    }
)
TABLE = read_table(FRAME, SCHEMA)


def test_people_are_drawn_whole_and_by_the_seed_alone() -> None:
    sample = draw_sample(TABLE, 200, seed=3)
    assert 180 <= sample.table.rows <= 200 and sample.of == 900 and not sample.whole
    drawn = set(sample.table.frame["who"])
    assert sample.table.rows == FRAME.filter(pl.col("who").is_in(list(drawn))).height
    assert sample.table.frame.equals(draw_sample(TABLE, 200, seed=3).table.frame)
    assert not sample.table.frame.equals(draw_sample(TABLE, 200, seed=4).table.frame)


def test_a_preview_says_what_it_looked_at() -> None:
    assert "200" not in draw_sample(TABLE, 1000).stated and "900" in draw_sample(TABLE, 1000).stated
    sample = draw_sample(TABLE, 200)
    said = preview(sample, 3).stated
    assert f"{sample.table.rows} of 900" in said and "seed 0" in said


def test_on_all_rows_it_tells_what_the_run_tells() -> None:
    sample = draw_sample(TABLE, 10_000)
    shown = preview(sample, 5, "mondrian")
    made = anonymize(FRAME, SCHEMA, "mondrian", k=5)
    assert shown.result.loss == pytest.approx(made.loss)
    sizes = made.checked.partition.sizes
    # The mean is over people, as the report has it: over rows it is another number.
    people = measure(made).after.people
    assert people is not None and shown.highest == 1 / sizes.min()
    assert shown.mean == pytest.approx(people.prosecutor.mean) != pytest.approx(sizes.size / 900)
    both = preview_many(sample, (3, 5), ("mondrian", "mdav"))
    assert [(one.k, one.result.method) for one in both] == [
        (3, "mondrian"), (3, "mdav"), (5, "mondrian"), (5, "mdav"),
    ]  # fmt: skip
    table = {one.method: one.loss for one in compare(FRAME, SCHEMA, 5, ["mondrian", "mdav"]).results}
    assert {one.result.method: one.result.loss for one in both if one.k == 5} == table


def test_what_cannot_be_kept_is_said_and_other_roles_are_tried_on_the_same_rows() -> None:
    sample = draw_sample(TABLE, 100)
    assert preview(sample, 5_000).result.failed
    columns = {**SCHEMA.to_dict()["columns"], "age": {"role": "other", "kind": "numeric"}}
    fewer = sample.with_schema(Schema.from_dict({"columns": columns}))
    assert fewer.table.frame.equals(sample.table.frame)
    assert preview(fewer, 5).result.loss != preview(sample, 5).result.loss
