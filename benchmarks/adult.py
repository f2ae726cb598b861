"""Adult as the benchmarks use it: which columns are quasi-identifiers, with which taxonomies."""

from __future__ import annotations

from typing import Any

import polars as pl

from benchmarks.timing import data_folder
from velado.data.io import attach_taxonomies, read_table
from velado.data.schema import Schema
from velado.data.table import Table

EIGHT = {
    "sex": "sex",
    "age": "age",
    "race": "race",
    "marital_status": "marital-status",
    "education": "education",
    "native_country": "native-country",
    "workclass": "workclass",
    "occupation": "occupation",
}


def schema_dict(age: str = "numeric") -> dict[str, Any]:
    """The schema of `adult_clean.csv`; *age* is "numeric" or "tree" (ARX's 100-leaf hierarchy)."""
    columns: dict[str, Any] = {}
    header = (data_folder() / "adult" / "adult_clean.csv").open().readline().strip().split(",")
    for name in header:
        if name == "age" and age == "numeric":
            columns[name] = {"role": "quasi", "kind": "numeric"}
        elif name in EIGHT:
            columns[name] = {
                "role": "quasi",
                "kind": "categorical",
                "taxonomy": f"adult/hierarchies/adult_hierarchy_{EIGHT[name]}.csv",
            }
        elif name == "income":
            columns[name] = {"role": "sensitive", "kind": "categorical"}
        else:
            # education_num repeats education, relationship gives sex away: neither may be published beside them.
            columns[name] = {"role": "other", "kind": "text", "publish": False}
    return {"columns": columns}


def adult(age: str = "numeric") -> Table:
    """30,162 rows with eight quasi-identifiers."""
    schema = attach_taxonomies(Schema.from_dict(schema_dict(age)), data_folder())
    return read_table(data_folder() / "adult" / "adult_clean.csv", schema)


def adult_joined() -> Table:
    """The same, with values that fewer than 20 people have joined to the rarest of the others: exact sums over a federation need ten in training."""
    table = adult()
    frame = table.frame
    for name in ("occupation", "native_country"):
        counts = frame.get_column(name).value_counts().sort("count")
        few = counts.filter(pl.col("count") < 20).get_column(name).to_list()
        rarest = counts.filter(pl.col("count") >= 20).get_column(name)[0]
        frame = frame.with_columns(pl.col(name).replace(few, [rarest] * len(few)))
    return table.with_frame(frame)


def nine_dict() -> dict[str, Any]:
    """The schema of ARX's copy, `adult_arx.csv`: all nine columns are quasi-identifiers with ARX's hierarchies."""
    names = [*EIGHT.values(), "salary-class"]
    return {
        "columns": {
            name: {
                "role": "quasi",
                "kind": "categorical",
                "taxonomy": f"adult/hierarchies/adult_hierarchy_{name}.csv",
            }
            for name in names
        }
    }


def adult_nine() -> Table:
    """ARX's copy with nine quasi-identifiers."""
    schema = attach_taxonomies(Schema.from_dict(nine_dict()), data_folder())
    return read_table(data_folder() / "adult" / "adult_arx.csv", schema)
