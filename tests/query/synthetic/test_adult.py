"""How near the pairs of columns of a synthetic census are to the true ones: the figure that the documentation states."""

from pathlib import Path

import polars as pl
import pytest

from velado.data.schema import Column, Schema
from velado.measures.utility.two_way import two_way
from velado.query.synthetic.axes import axes_of
from velado.query.synthetic.synthesize import synthesize
from velado.query.unit import Unit


@pytest.mark.slow
def test_two_way_tables_of_adult_are_within_four_in_a_hundred(data_folder: Path) -> None:
    """Nine columns, rho 0.5: 0.018 and 0.019 were measured, and 0.041 with the tree alone; noise moves it by far less than that."""
    frame = pl.read_csv(data_folder / "adult" / "adult_arx.csv", separator=";", infer_schema=False)
    assert frame.shape == (30_162, 9)
    columns = {
        # The census' own lists are public; here they are taken from the file.
        name: Column(name, "quasi", values=tuple(sorted(frame[name].unique())), missing="refuse")
        for name in frame.columns
    } | {"age": Column("age", "quasi", "numeric", bounds=(17, 90), step=1.0, missing="refuse")}
    schema = Schema({name: columns[name] for name in frame.columns})
    made = synthesize(frame, schema, rho="0.5")
    assert made.how.way == "adaptive"
    axes = axes_of(schema, Unit())
    true, shown = ([axis.codes(rows[axis.column], ()) for axis in axes] for rows in (frame, made.frame))
    found = two_way(true, shown, [axis.size for axis in axes])
    assert found.mean <= 0.040
    assert found.one_way <= 0.010
