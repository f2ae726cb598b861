"""Small tables whose every measure can be worked out by hand."""

import polars as pl
import pytest

from velado.data.schema import Column, Schema, TaxonomySpec
from velado.data.table import Table


def make_table(frame: pl.DataFrame, *columns: Column, **settings) -> Table:
    return Table.of(frame, Schema({column.name: column for column in columns}, **settings))


@pytest.fixture
def thesis_table() -> Table:
    """Table 2.1 of the GFKMC thesis: six patients, age and postal code, k = 3 in its Table 2.2."""
    frame = pl.DataFrame(
        {
            "idade": ["29", "30", "29", "40", "42", "43"],
            "cep": ["36571-000", "36579-000", "36570-000", "36582-000", "36585-000", "36587-000"],
            "diagnostico": ["Diabetes", "Hipertensão", "Asma", "hepatite", "Câncer", "Câncer"],
        }
    )
    return make_table(
        frame,
        Column("idade", "quasi", "numeric"),
        Column("cep", "quasi", "categorical", taxonomy=TaxonomySpec("prefix", keep=(4,))),
        Column("diagnostico", "sensitive", "categorical"),
    )


@pytest.fixture
def thesis_release(thesis_table: Table) -> pl.DataFrame:
    """Table 2.2 in velado's notation."""
    return thesis_table.frame.with_columns(
        pl.Series("idade", ["[20..30]"] * 3 + ["[40..50]"] * 3),
        pl.Series("cep", ["3657*"] * 3 + ["3658*"] * 3),
    )
