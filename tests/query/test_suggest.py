"""Suggested groups bind nobody until somebody signs them."""

import sys

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.data.table import Table
from velado.errors import MissingExtra, ParameterError
from velado.query.groups import suggest_groups
from velado.query.session import Session
from velado.query.unit import Unit

SCHEMA = Schema(
    {
        "name": Column("name", "identifier", "text"),
        "x": Column("x", "quasi", "numeric", bounds=(0.0, 100.0)),
        "kind": Column("kind", "quasi", "categorical"),
    }
)


def register() -> Table:
    """Three tight clusters of 4, 3 and 2 rows, one row far from all, and a missing cell that breaks nothing."""
    x = ["1", "1.1", "1.2", "1.3", "50", "50.1", "50.2", "99", "99.1", "75"]
    kinds = ["a"] * 4 + ["b"] * 3 + ["c"] * 2 + ["a"]
    return Table.of(
        pl.DataFrame({"name": [f"p{i}" for i in range(10)], "x": x, "kind": kinds}), SCHEMA, "register"
    )


def test_rows_that_lie_together_are_one_group_and_the_others_are_alone() -> None:
    found = suggest_groups(register(), "public", reach=0.1)
    assert sorted(found.sizes.tolist()) == [1, 2, 3, 4] and found.most_rows == 4
    labels = found.labels.tolist()
    assert len(set(labels[:4])) == len(set(labels[4:7])) == len(set(labels[7:9])) == 1
    assert found.series().n_unique() == 4 and found.series().dtype == pl.String


def test_a_mixture_gives_as_many_groups_as_it_was_asked_for() -> None:
    found = suggest_groups(register(), "other", method="gmm", components=3, seed=1)
    assert 1 <= len(found.sizes) <= 3 and int(found.sizes.sum()) == 10
    again = suggest_groups(register(), "other", method="gmm", components=3, seed=1)
    assert np.array_equal(found.labels, again.labels)


def test_a_session_refuses_groups_nobody_signed() -> None:
    found = suggest_groups(register(), "public", reach=0.1)
    assert found.signed_off is False and found.to_dict()["signed_off"] is False
    table = register()
    column = Column("group", "identifier", "text", group=True)
    with_groups = Table.of(
        table.frame.with_columns(found.series()), Schema({**SCHEMA.columns, "group": column}), "register"
    )
    with pytest.raises(ParameterError, match="not signed off"):
        Session(with_groups, found, 1)
    signed = found.sign("steward", "addresses of the public register", rows=3)
    session = Session(with_groups, signed, 1)
    assert session.unit == Unit("group", 3) and not found.signed_off
    assert session.answer("SELECT COUNT(*) FROM register").guarantee.most_rows == 3


@pytest.mark.parametrize(("name", "reason"), [("", "why"), ("who", " "), ("", "")])
def test_a_signature_has_a_name_and_a_reason(name: str, reason: str) -> None:
    with pytest.raises(ParameterError, match="name and a reason"):
        suggest_groups(register(), "public").sign(name, reason)


def test_private_rows_are_not_clustered_by_accident() -> None:
    with pytest.raises(ParameterError, match="private rows"):
        suggest_groups(register(), "private")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        suggest_groups(register(), "public", method="k-means")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        suggest_groups(register(), "public", columns=["nothing"])


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtra, match=r"velado\[ml\]"):
        suggest_groups(register(), "public")
