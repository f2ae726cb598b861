"""A PostgreSQL relation as the statement `kept`: checked once against the catalogue, then cells as the layout says.

The server casts, cuts units to their most rows and aggregates; a row never leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from velado.data.normal import case_of
from velado.data.schema import Schema
from velado.errors import SchemaError
from velado.query.engines.grid_index import exact_sql, index_sql
from velado.query.engines.layout import Layout, Place, missing_numbers
from velado.query.engines.postgres_units import Normal, is_capable
from velado.query.unit import Unit

_WHOLE = ("int2", "int4", "int8")
_FLOATS = ("float4", "float8")
_DAYS = ("date", "timestamp", "timestamptz")
_OTHERS = ("citext", "bool", "uuid", "numeric", *_WHOLE, *_DAYS)
Ask = Callable[[str, Sequence[Any]], Iterable[Sequence[Any]]]


@dataclass(frozen=True)
class Source:
    """The relation's quoted name and, for every declared column, the name of its type (`string` for all text-like)."""

    relation: str
    types: dict[str, str]
    layout: Layout
    missing: tuple[str, ...]
    missing_numbers: tuple[float, ...]
    unit: Unit
    spelling: Normal
    collation: str

    def kept(self, used: Iterable[str], first: int) -> tuple[str, list[Any]]:
        """`WITH kept AS (...) ` with the columns *used*, its parameters numbered from *first*.

        A unit keeps the rows whose texts have the smallest MD5, so which rows it keeps depends on its own rows alone;
        rows with equal texts are equal, so it does not matter which of them stays. Rows without a unit value do not
        count. The window is computed before any condition, whatever is asked.
        """
        missing, none = f"${first}::text[]", f"${first + 1}::text[]"
        places = {place.name: place for place in self.layout.places.values()}
        places |= {place.index: place for place in self.layout.places.values()}
        wanted = {places[name].name: places[name] for name in used}
        columns = [f"{self._cell(place, missing)} AS {name}" for name, place in wanted.items()]
        condition = ""
        if self.unit.column is not None:
            text = self.row_text()
            columns.append(
                f'row_number() OVER (PARTITION BY {self._unit(missing, none)} ORDER BY md5({text}) COLLATE "C", {text} COLLATE "C") AS n'
            )
            columns.append(f"{self._unit(missing, none)} IS NOT NULL AS has_unit")
            condition = f" WHERE has_unit AND n <= {self.unit.rows}"
        inner = f"SELECT {', '.join(columns) or '1'} FROM {self.relation}"
        # A parameter that no text names is an error to the server.
        parameters: list[Any] = [list(self.missing)] if missing in inner else []
        parameters += [self._no_unit()] if none in inner else []
        outer = list(wanted)
        for name in used:
            place = places[name]
            if name == place.index and place.grid is not None:
                exact = exact_sql(place.name, place.grid)
                outer.append(f"{index_sql(place.name, place.grid, exact)} AS {name}")
        return (
            f"WITH kept AS (SELECT {', '.join(outer) or '1'} FROM ({inner}) AS cells{condition}) ",
            parameters,
        )

    def row_text(self) -> str:
        """The declared cells of a row as one text, equal for equal cells."""
        return f"ROW({', '.join(quoted(name) for name in self.types)})::text"

    @property
    def spelled(self) -> bool:
        """Whether units are known by a text, which may be spelled in several ways."""
        column = self.unit.column
        return (
            column is not None
            and self.layout.places[column].sort == "text"
            and self.types[column] in ("string", "citext")
        )

    def units(self) -> tuple[str, list[Any]]:
        """The statement of all units, one a row, for a check; with its parameters."""
        unit = self._unit("$1::text[]", "$2::text[]")
        return f"SELECT {unit} AS unit FROM {self.relation}", [list(self.missing), self._no_unit()]

    def _no_unit(self) -> list[str]:
        # The normal forms of the texts that mean "no value".
        return sorted({*self.spelling.python([*self.missing, ""])})

    def _unit(self, missing: str, none: str) -> str:
        assert self.unit.column is not None
        place, name = self.layout.places[self.unit.column], quoted(self.unit.column)
        if place.sort == "number":
            cell = self._cell(place, missing)
            none = ", ".join(f"'{value!r}'::float8" for value in self.missing_numbers)
            return f"CASE WHEN {cell} IN ({none}) THEN NULL ELSE {cell} END" if none else cell
        if place.sort == "day":
            name = f"{name}::date"
        gone = f'{name}::text COLLATE "C" = ANY({missing})'
        if self.spelled:
            tidy, normal = self.spelling.tidy(name), self.spelling.sql(name)
            # The column's own collation stays: texts it calls equal are one group.
            own = f" COLLATE {self.collation}" if self.collation else ""
            gone += f" OR {tidy} = ANY({missing})"
            return (
                f'(SELECT CASE WHEN {gone} OR t COLLATE "C" = ANY({none}) THEN NULL ELSE t END{own}'
                f" FROM (SELECT {normal} AS t OFFSET 0) AS u)"
            )
        # Else the server's own equality: 1.0 and 1.00 are one numeric value, and one group.
        return f"CASE WHEN {gone} THEN NULL ELSE {name} END"

    def _cell(self, place: Place, missing: str) -> str:
        name, kind = quoted(place.column.name), self.types[place.column.name]
        if place.sort == "number":
            if kind in _WHOLE:
                return f"{name}::float8"
            if kind in _FLOATS:
                return f"CASE WHEN {name}::float8 = 'NaN'::float8 THEN NULL ELSE {name}::float8 END"
            # A numeric beyond a double's range is an error to the server; here it is an infinity, or nought.
            return (
                f"CASE WHEN {name} = 'NaN'::numeric THEN NULL "
                f"WHEN {name} > '1.7976931348623157e308'::numeric THEN 'Infinity'::float8 "
                f"WHEN {name} < '-1.7976931348623157e308'::numeric THEN '-Infinity'::float8 "
                f"WHEN abs({name}) < '5e-324'::numeric THEN 0::float8 ELSE {name}::float8 END"
            )
        if place.sort == "day":
            return f"{name}::date"
        text = f'{name}::text COLLATE "C"'
        return f"CASE WHEN {text} = ANY({missing}) THEN NULL ELSE {text} END"


def find(ask: Ask, relation: str, schema: Schema, unit: Unit) -> Source:
    """The relation, from the catalogue alone: it exists, has the declared columns, and their types suit their kinds."""
    rows = list(ask(_RELATIONS, [relation]))
    if not rows:
        raise SchemaError(
            f"There is no table or view '{relation}' in the database.",
            "Nothing can be asked of it.",
            "Write its name as it is stored, with its schema before a point if it is not on the search path.",
        )
    oid, space, name = rows[0]
    found = {str(column): (str(kind), str(own)) for column, kind, own in ask(_COLUMNS, [oid])}
    stored = {column: kind for column, (kind, _) in found.items()}
    absent = [column for column in schema.columns if column not in stored]
    if absent:
        raise SchemaError(
            f"The schema names {len(absent)} column(s) the relation does not have: {_list(absent)}.",
            "A question about a column that is not there has no answer.",
            "Correct the names in the schema.",
        )
    layout = Layout.of(schema, unit)
    unfit = [name for name, place in layout.places.items() if not _suits(place, stored[name])]
    if unfit:
        raise SchemaError(
            f"{len(unfit)} column(s) of the relation do not have a type that suits their declared kind: {_list(unfit)}.",
            "Numbers need a numeric type, dates a date type, and everything else one that is read as text.",
            "Correct their kind in the schema, or query a view that casts them.",
        )
    types = {column: stored[column] for column in schema.columns}
    normal, collation = Normal(False), ""
    if unit.column is not None:
        # A type whose equality does not tell case has said so itself.
        fold = case_of(schema.columns[unit.column]) != "distinct" or types[unit.column] == "citext"
        normal, collation = Normal(is_capable(ask), fold, schema.decimal), found[unit.column][1]
    return Source(
        f"{quoted(space)}.{quoted(name)}",
        types,
        layout,
        schema.missing_values,
        missing_numbers(schema),
        unit,
        normal,
        collation,
    )


# A name is looked up as it stands first, then as schema.name; never parsed as SQL.
_RELATIONS = """
SELECT c.oid::int8, n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')
  AND ((c.relname = $1::text AND pg_catalog.pg_table_is_visible(c.oid)) OR n.nspname || '.' || c.relname = $1::text)
ORDER BY (c.relname = $1::text) DESC LIMIT 1
"""

# The third is the name of a collation that calls different texts equal, if the column has one.
# A domain counts as the type it is over; text-like types and enumerations are told by their category.
_COLUMNS = """
SELECT a.attname, CASE WHEN 'citext' IN (t.typname, b.typname) THEN 'citext'
    WHEN t.typcategory IN ('S', 'E') THEN 'string' ELSE coalesce(b.typname, t.typname) END,
    CASE WHEN c.collisdeterministic THEN '' ELSE coalesce(quote_ident(n.nspname) || '.' || quote_ident(c.collname), '') END
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = nullif(t.typbasetype, 0)
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
"""


def quoted(name: str) -> str:
    """An identifier between quotes, its own quotes doubled."""
    return '"' + name.replace('"', '""') + '"'


def _suits(place: Place, kind: str) -> bool:
    if place.sort == "number":
        return kind in (*_WHOLE, *_FLOATS, "numeric")
    if place.sort == "day":
        return kind in _DAYS
    return kind == "string" or kind in _OTHERS


def _list(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
