"""A column that matters more to the steward is generalized less; what is reported stays unweighted."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import SchemaError
from velado.release.anonymize import anonymize
from velado.release.methods import (
    GFKMC,
    GOK,
    MDAV,
    FullDomain,
    KMember,
    Mondrian,
    NearestNeighbours,
    Progressive,
    TopDownGreedy,
)


def table(weight: float) -> Table:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({name: [str(v) for v in rng.integers(0, 40, 400)] for name in ("a", "b", "c")})
    columns = {name: {"role": "quasi", "kind": "numeric"} for name in frame.columns}
    columns["a"]["weight"] = weight
    return Table.of(frame, Schema.from_dict({"columns": columns}))


@pytest.mark.parametrize(
    "method",
    [
        FullDomain(),
        GFKMC(),
        GFKMC(numbers="raw"),
        GOK(iterations=1),
        KMember(),
        MDAV(),
        Mondrian(),
        NearestNeighbours(),
        Progressive(),
        TopDownGreedy(),
    ],
    ids=lambda m: m.name,
)
def test_a_column_of_more_weight_loses_less(method):
    plain, heavy = table(1.0), table(10.0)
    before = anonymize(plain, plain.schema, method)
    after = anonymize(heavy, heavy.schema, method)
    assert after.losses["a"] < before.losses["a"]
    assert after.verdicts[0].holds
    assert all(0 <= loss <= 1 for loss in after.losses.values())


@pytest.mark.parametrize("weight", [0, -1, "2", True])
def test_a_weight_is_a_number_above_zero(weight):
    with pytest.raises(SchemaError, match="weight"):
        table(weight)
