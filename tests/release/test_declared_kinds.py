"""The declared kind holds for every published column, whatever its role."""

from __future__ import annotations

import polars as pl
import pytest

import velado
from velado.data.schema import Column, Schema
from velado.errors import TableError
from velado.release.operations import Generalize

ROWS = 12


def made(kind: str, cells: list[str], how: str, **more: object) -> velado.Release:
    frame = pl.DataFrame({"age": [str(20 + at) for at in range(ROWS)], "x": cells})
    schema = Schema({"age": Column("age", "quasi", "numeric"), "x": Column("x", "other", kind, **more)})
    if how == "transform":
        return velado.transform(frame, schema, [Generalize("age", width=10)], per="row")
    return velado.anonymize(frame, schema, "mondrian", k=3, per="row")


@pytest.mark.parametrize("how", ["anonymize", "transform"])
@pytest.mark.parametrize(
    ("kind", "good", "more"),
    [
        ("numeric", "2", {}),
        ("numeric", "200", {"bounds": (0, 100)}),  # bounds are for questions and recoding
        ("date", "2024-03-07", {}),
        ("date", "07/03/2024", {"format": "%d/%m/%Y"}),
    ],
)
def test_text_among_numbers_or_days_stops_the_release_of_any_column(how, kind, good, more) -> None:
    blank = [good] * (ROWS - 1) + [""]
    assert made(kind, blank, how, **more).aligned["x"].to_list() == blank
    with pytest.raises(TableError) as error:
        made(kind, [good] * (ROWS - 2) + ["Ana Souza"] * 2, how, **more)
    told = str(error.value)
    assert "'x'" in told and "2" in told and "Ana" not in told


def test_a_column_that_stays_behind_may_hold_anything() -> None:
    cells = ["soon"] * ROWS
    assert made("date", cells, "anonymize", publish=False).aligned.columns == ["age"]
