"""Look and Sign say whom all published columns together tell apart, and 'anonymized' is not the first ground offered."""

import json
from pathlib import Path

import polars as pl
import pytest

from velado.apps.desk.previewing import told_lines
from velado.apps.desk.run_shown import shown
from velado.data.schema import Schema
from velado.study.preview import draw_sample, preview
from velado.study.run import publish
from velado.testing.examples import table

from .desks import Desk
from .test_decisions import finished_run


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_run_counts_people_by_all_published_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "who": [f"P{n // 2}" for n in range(40)],
            "age": [20 + n // 2 for n in range(40)],
            "note": [f"n{n // 4}" for n in range(40)],
        }
    )
    columns = {
        "who": {"role": "identifier", "kind": "text", "person": True},
        "age": {"role": "quasi", "kind": "numeric"},
        "note": {"role": "other", "side_door": "accept", "reason": "made up"},
    }
    done = publish(frame, Schema.from_dict({"columns": columns}), "mondrian", k=5, out=tmp_path / "out")
    told = shown(done, tmp_path)["together"]
    # Each crowd is of five people in a row, and two people in a row share a note.
    crowds = (
        done.release.aligned.with_columns(frame["who"]).group_by("age", "note").agg(pl.col("who").unique())
    )
    alone = {who for people in crowds["who"] if len(people) == 1 for who in people}
    assert alone
    assert told == {"unit": "people", "units": 20, "alone": len(alone), "share": len(alone) / 20}


def test_sign_says_it_and_offers_anonymized_last(desk: Desk) -> None:
    desk.ready()
    finished_run(desk, [])
    (file,) = desk.project.runs.glob("*/result.json")
    result = json.loads(file.read_text())
    result["together"] = {"unit": "people", "units": 60, "alone": 57, "share": 0.95}
    file.write_text(json.dumps(result))
    page = desk.get("/sign")
    assert "By all published columns together, 57 of 60 people are like nobody else." in page.words
    assert "for one row at a time" in page.words and "counts as anonymized only if" in page.words
    offered = page.text.split('id="legal_basis"')[1].split("</select>")[0]
    assert offered.index("anonymized data") > offered.rindex("legitimate interest")


def test_the_preview_claims_one_row_at_a_time_alone() -> None:
    lines = " ".join(str(one) for one in told_lines(preview(draw_sample(table(age=[20, 21, 30, 31])), k=2)))
    assert "By what outsiders may know alone, for one row at a time" in lines


def test_the_promise_says_that_rows_of_one_person_may_be_joined(desk: Desk) -> None:
    desk.ready()
    assert "columns that stay the same within a person may join them" in desk.get("/promise").words
