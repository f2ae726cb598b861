"""The printout of a transformed table tells both readings of a blank."""

from __future__ import annotations

import polars as pl

import velado
from velado.release.operations import LocalSuppression
from velado.report.blocks import Table
from velado.report.transform_lines import transform_lines

SCHEMA = velado.Schema.from_dict(
    {"columns": {"age": {"role": "quasi", "kind": "numeric"}, "sex": {"role": "quasi"}}}
)


def smallest(frame: pl.DataFrame, **suppression: object) -> list[list[str]]:
    operation = LocalSuppression(k=2, **suppression)
    made = velado.transform(frame, SCHEMA, [operation], per="row")
    (table,) = [part for part in transform_lines(made, velado.measure(made)) if isinstance(part, Table)]
    return [row for row in table.rows if row[0].startswith("smallest group")]


def test_both_readings_of_a_blank_are_told() -> None:
    frame = pl.DataFrame({"age": ["20", "20", "30", "30", "40"], "sex": ["F", "F", "F", "M", "M"]})
    plain, wild = smallest(frame, blanks="wildcard")
    assert plain == ["smallest group", "1", "1"]
    assert wild[0] == "smallest group, if a blank matches anything" and wild[1] == "1" and int(wild[2]) >= 2


def test_without_blanks_there_is_one_reading() -> None:
    frame = pl.DataFrame({"age": ["20", "20", "30", "30"], "sex": ["F", "F", "M", "M"]})
    assert smallest(frame) == [["smallest group", "2", "2"]]
