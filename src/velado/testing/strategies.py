"""Hypothesis strategies: small random tables with every kind of column, blanks, ties and constants included."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import strategies as st

from velado.data.schema import Schema
from velado.data.table import Table

_CITY = {
    "Southeast": {"MG": ["Juiz de Fora", "Viçosa"], "RJ": ["Rio"]},
    "South": {"PR": ["Curitiba", "Londrina"]},
}
_CITIES = ["Juiz de Fora", "Viçosa", "Rio", "Curitiba", "Londrina"]


@st.composite
def tables(draw: Any, min_rows: int = 6, max_rows: int = 40, person: bool | None = None) -> Table:
    """A table of one to five quasi-identifiers (numeric, taxonomy, prefix, date, flat), with a sensitive column.

    Values collide often, columns may be constant and cells may be blank: the cases in which methods err.

    >>> import warnings
    >>> with warnings.catch_warnings():  # examples are drawn one by one in a console only
    ...     warnings.simplefilter("ignore")
    ...     tables(min_rows=6, max_rows=6).example().rows
    6
    """
    rows = draw(st.integers(min_rows, max_rows))
    makers: dict[str, tuple[Any, dict[str, object]]] = {
        "age": (st.integers(18, 40).map(str), {"kind": "numeric"}),
        "weight kg": (st.sampled_from(["50.5", "61", "61.25", "-3", "1e2"]), {"kind": "numeric"}),
        "city": (
            st.sampled_from(_CITIES),
            {"kind": "categorical", "taxonomy": {"builder": "tree", "nodes": _CITY}},
        ),
        "cep": (
            st.sampled_from(["36570-000", "36571-000", "36600-000", "80000-100"]),
            {"kind": "categorical", "taxonomy": {"builder": "prefix", "keep": [4, 2]}},
        ),
        "day": (
            st.dates().map(
                lambda d: (
                    d.replace(year=2020 + d.year % 4).isoformat()
                    if (d.month, d.day) != (2, 29)
                    else "2020-02-29"
                )
            ),
            {"kind": "date"},
        ),
        "sex": (st.sampled_from(["F", "M"]), {"kind": "categorical"}),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(makers)), min_size=1, max_size=5, unique=True))
    columns: dict[str, list[str | None]] = {}
    entries: dict[str, object] = {}
    for name in chosen:
        values, entry = makers[name]
        if draw(st.booleans()):
            values = st.one_of(values, values, values, values, st.none())
        cells = draw(st.lists(values, min_size=rows, max_size=rows))
        if all(cell is None for cell in cells):
            cells[0] = draw(makers[name][0])
        columns[name] = cells
        entries[name] = {"role": "quasi", **entry}
    columns["disease"] = draw(
        st.lists(st.sampled_from(["flu", "cold", "gout", None]), min_size=rows, max_size=rows)
    )
    # Among a handful of people chance alone makes a disease follow one of them: signed, since promises are what is tried.
    entries["disease"] = {
        "role": "sensitive",
        "kind": "categorical",
        "side_door": "accept",
        "identifier": "accept",
        "reason": "drawn at random",
    }
    if person if person is not None else draw(st.booleans()):
        columns["patient"] = draw(st.lists(st.integers(1, rows).map(str), min_size=rows, max_size=rows))
        entries["patient"] = {"role": "identifier", "kind": "text", "person": True}
    schema = Schema.from_dict({"table": {"constant": "allow"}, "columns": entries})
    frame = pl.DataFrame({name: pl.Series(name, cells, dtype=pl.String) for name, cells in columns.items()})
    return Table.of(frame, schema)
