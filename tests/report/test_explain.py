"""Which rows and columns carry the loss, worked by hand."""

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Schema
from velado.data.table import Table
from velado.release.anonymize import anonymize
from velado.release.methods import Mondrian
from velado.report.facts import CostlyRow, RowLosses, row_losses


def losing(losses: list[list[float]], names: str, kept: list[bool]) -> RowLosses:
    """Rows that lose so much in each column, every row with a value of its own."""
    own = tuple(np.array(column) for column in zip(*losses, strict=True))
    return RowLosses(own, tuple(np.arange(len(kept)) for _ in own), tuple(names), np.array(kept))


HAND = losing(
    [[0.0, 0.2], [0.7, 0.7], [0.5, 0.1], [0.5, 0.1], [0.0, 0.0]], "ab", [True, False, True, True, True]
)
"""The second row is suppressed: it loses 1 in each column, whatever its values would."""


def test_each_column_carries_its_part_of_the_loss() -> None:
    assert HAND.column_shares() == pytest.approx({"a": 2.0 / 3.4, "b": 1.4 / 3.4})


def test_the_costliest_rows_are_published_ones_and_ties_go_to_the_earlier() -> None:
    assert HAND.costliest() == [
        CostlyRow(3, pytest.approx(0.3), ("a",)),
        CostlyRow(4, pytest.approx(0.3), ("a",)),
        CostlyRow(1, pytest.approx(0.1), ("b",)),
    ]
    assert [entry.row for entry in HAND.costliest(1)] == [3]


def test_all_columns_of_a_tie_are_named() -> None:
    tied = losing([[0.1 + 0.2, 0.2, 0.3]], "abc", [True])
    assert tied.costliest()[0].columns == ("a", "c")


def test_the_costliest_share_of_all_rows_carries_its_part() -> None:
    assert HAND.carried_by(0.2) == pytest.approx(1.0 / 1.7)
    assert HAND.carried_by(0.4) == pytest.approx(1.3 / 1.7)
    assert HAND.carried_by(1.0) == pytest.approx(1.0)


def test_no_loss_gives_no_shares() -> None:
    nothing = losing([[0.0]] * 3, "a", [True] * 3)
    assert nothing.column_shares() == {"a": 0.0}
    assert nothing.costliest() == []
    assert nothing.carried_by(0.05) == 0.0


def test_rows_that_left_before_the_method_saw_them_count_in_their_own_place() -> None:
    schema = Schema.from_dict(
        {"columns": {"age": {"role": "quasi", "kind": "numeric", "missing": "suppress"}}}
    )
    ages = ["1", "", "2", "10", "11", "12"]
    release = anonymize(
        Table.of(pl.DataFrame({"age": ages}), schema), schema, Mondrian(), suppression=0.2, k=2
    )
    found = row_losses(release)
    assert found.kept.tolist() == [True, False, True, True, True, True]
    # The median cut gives {1, 2, 10} and {11, 12} of a range of 11.
    assert found.of(slice(None))[:, 0].tolist() == pytest.approx([9 / 11, 1, 9 / 11, 9 / 11, 1 / 11, 1 / 11])
    assert found.by_row.mean() == pytest.approx(release.loss)
