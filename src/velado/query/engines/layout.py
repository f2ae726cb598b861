"""How an engine names a schema's columns: by their place, so that no name of the owner's needs to be trusted or quoted.

Column number i of the schema is `c<i>`: a number as FLOAT8 without NaN, a day as DATE, anything else as TEXT; missing
is NULL. A number with declared bounds has its grid index beside it as `g<i>`. Names that differ only in case, hold
quotes or are SQL's own words are therefore no special case in any query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from velado.data.number_text import with_point
from velado.data.schema import Column, Schema
from velado.errors import QueryRefused, SchemaError
from velado.query.grid import Grid
from velado.query.unit import Unit

Sort = Literal["number", "day", "text"]

BLANKS = " \t\n\r\v\f"
"""What a server without NFKC takes away around the text of a unit: to merge two units is safe, to split one is not."""


@dataclass(frozen=True)
class Place:
    """One column: its declaration, its number, how it is compared, and its grid if it has one."""

    column: Column
    number: int
    sort: Sort
    grid: Grid | None

    @property
    def name(self) -> str:
        """The column's name in every statement."""
        return f"c{self.number}"

    @property
    def index(self) -> str:
        """The name of the column's grid index in every statement."""
        return f"g{self.number}"


@dataclass(frozen=True)
class Layout:
    """The places of all columns a schema declares, and how its numbers are written."""

    places: Mapping[str, Place]
    decimal: str = "."
    unit: Unit = field(default_factory=Unit)

    @classmethod
    def of(cls, schema: Schema, unit: Unit) -> Layout:
        """Every declared column has a place, in the schema's order; the unit's column must be among them."""
        if unit.column is not None and unit.column not in schema.columns:
            raise SchemaError(
                f"The unit is all rows with one value of '{unit.column}', which the schema does not name.",
                "Whose rows belong together could not be told.",
                "Add the column to the schema, or name another one.",
            )
        places = {}
        for number, column in enumerate(schema.columns.values()):
            sort: Sort = {"numeric": "number", "date": "day"}.get(column.kind, "text")  # type: ignore[assignment]
            places[column.name] = Place(column, number, sort, _grid(column))
        return cls(places, schema.decimal, unit)

    def place(self, name: str) -> Place:
        """The place of a declared column, or QueryRefused."""
        found = self.places.get(name)
        if found is None:
            raise QueryRefused(
                f"There is no column '{name}' in the schema.",
                "Only declared columns can be asked about.",
                "Use a name the schema declares.",
            )
        return found

    def on_grid(self, grid: Grid) -> Place:
        """The place whose declared grid this is; any other grid was not prepared and is refused."""
        place = self.place(grid.column)
        if place.grid != grid:
            raise QueryRefused(
                f"Column '{grid.column}' is not summed on that grid.",
                "The rows stand on the grid the schema declares.",
                "Build the grid with Grid.of from the table's own schema.",
            )
        return place


def _grid(column: Column) -> Grid | None:
    try:
        return Grid.of(column)
    except QueryRefused:
        return None


def missing_numbers(schema: Schema) -> tuple[float, ...]:
    """The texts that mean "no value" which are numbers: a unit of that number is none, however the rows are stored."""
    found = set()
    for text in schema.missing_values:
        try:
            found.add(float(with_point(text.strip(), schema.decimal)) + 0.0)
        except ValueError:
            continue
    return tuple(sorted(value for value in found if value == value))
