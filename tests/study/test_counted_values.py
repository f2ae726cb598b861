"""What leaves as counts of groups is judged as if it left in the rows: names, another column, formulas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from velado.data.history_file import create_history
from velado.data.schema import Schema
from velado.errors import HistoryError, IdentifierOpen, ParameterError, SuppressionLimitExceeded, VeladoError
from velado.release.history.together import Together

from .test_together import KEY, SCHEMA, everybody, send

ASKED = Together(what="values", group=10)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELADO_STATE", str(tmp_path / "state"))
    path = tmp_path / "visits.history"
    create_history(path, KEY)
    return path


def with_column(**entry: object) -> Schema:
    columns = {name: column.to_dict() for name, column in SCHEMA.columns.items()}
    return Schema.from_dict({"columns": {**columns, **entry}})


def test_counts_of_names_and_addresses_are_refused_as_the_column_itself_is(
    tmp_path: Path, history: Path
) -> None:
    frame = everybody().with_columns(illness=pl.format("m{}@mail.com", pl.col("id").str.slice(7)))
    with pytest.raises(IdentifierOpen, match="'illness' identifies people"):
        send(frame, tmp_path / "a", history, ASKED)
    assert not (tmp_path / "a").exists()
    signed = {"role": "sensitive", "identifier": "accept", "reason": "made up"}
    send(frame, tmp_path / "a", history, ASKED, schema=with_column(illness=signed))
    assert "@mail.com" in (tmp_path / "a" / "release" / "values.csv").read_text()


def test_a_history_counts_the_values_of_one_column(tmp_path: Path, history: Path) -> None:
    send(everybody(), tmp_path / "a", history, ASKED)
    frame = everybody().with_columns(income=pl.Series(np.arange(120) % 3).cast(pl.String))
    other = with_column(
        illness={"role": "sensitive", "publish": False}, income={"role": "sensitive", "kind": "categorical"}
    )
    with pytest.raises(HistoryError, match="counts the values of 'illness'"):
        send(frame, tmp_path / "b", history, ASKED, schema=other)
    assert not (tmp_path / "b").exists()
    send(everybody(), tmp_path / "c", history, ASKED)


def test_what_looks_like_a_formula_is_refused_escaped_or_counted_in_the_counts_too(
    tmp_path: Path, history: Path
) -> None:
    frame = everybody().with_columns(pl.col("illness").replace("gout", "=1+1"))
    with pytest.raises(VeladoError, match="formula"):
        send(frame, tmp_path / "a", history, ASKED, formulas="refuse")
    assert not (tmp_path / "a").exists()
    kept = send(frame, tmp_path / "b", history, ASKED)
    manifest = json.loads((kept.public / "manifest.json").read_text())
    text = (kept.public / "values.csv").read_text()
    assert ",=1+1," in text and json.dumps(manifest).count('"cells_like_formulas": 0') == 0
    escaped = send(frame, tmp_path / "c", history, ASKED, formulas="escape")
    assert (escaped.public / "values.csv").read_text() == text.replace(",=1+1,", ",'=1+1,")
    promise = json.loads((escaped.public / "manifest.json").read_text())["promise"]["over_time"]
    assert promise["type"] == "guaranteed" and promise["holds"]


@pytest.mark.parametrize("what", ["people", "values"])
def test_a_row_that_is_nobodys_is_not_held_together_with_anybody(
    what: str, tmp_path: Path, history: Path
) -> None:
    frame = everybody().with_columns(id=pl.when(pl.col("id") == "person 7").then(None).otherwise("id"))
    with pytest.raises(ParameterError, match="does not say whose"):
        send(frame, tmp_path / "a", history, Together(what=what))


def test_the_share_that_is_to_be_allowed_is_told_as_it_is_typed(tmp_path: Path, history: Path) -> None:
    from velado.text import speaking

    send(everybody()[:60], tmp_path / "a", history, "people")
    with speaking("pt"), pytest.raises(SuppressionLimitExceeded) as found:
        send(everybody()[40:], tmp_path / "b", history, "people", suppression=0.0)
    share = str(found.value.fix).split("--suppression ")[1].split(" ")[0]
    assert 0 < float(share) <= 1
