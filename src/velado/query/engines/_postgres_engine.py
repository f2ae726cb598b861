"""PostgreSQL by URL: each tally is one read-only snapshot, aggregated by the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl
import psycopg
from psycopg.conninfo import conninfo_to_dict

from velado.data.blanks import missing_numbers
from velado.data.normal import UNSEEN_POINTS, normal_texts
from velado.data.numbers import THOUSANDS
from velado.data.schema import Schema
from velado.engines.places import ServerAddress
from velado.engines.postgres_connection import SETTINGS, unreachable
from velado.errors import EngineError, SchemaError
from velado.query.engines import _tally as fingerprint
from velado.query.engines._compile import (
    BLANKS,
    POSTGRES,
    ColumnPlace,
    Layout,
    Statement,
    exact_sql,
    index_sql,
)
from velado.query.engines._tally import tally, too_slow
from velado.query.identity import TableIdentity
from velado.query.needs import AnyKey, Counts, Needs, Tallies
from velado.query.unit import Unit
from velado.query.values import Predicate
from velado.text import say, say_n

# Whose row is whose in PostgreSQL: the normal form of a unit's text, as far as the server can compute it.
#
# From version 13 on, in a UTF-8 database, the server does all of it but for letters whose capital its locale does not
# know (a C locale knows the ASCII ones only). What it cannot do is looked at once, when the table is opened: where two of
# its units are one under velado's own normal form, the table is refused, for one person would count as two.

# What nobody sees, as the server's regular expressions name code points.
_UNSEEN = "".join("-".join(rf"\U{end:0>8}" for end in run.split("-")) for run in UNSEEN_POINTS.split())
_UNSEEN = f"[{_UNSEEN}]+"
_BLANK = r"[\u0001-\u0020\u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u2800\u3000]+"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_COMMA = r"^[+-]?([0-9]+,?[0-9]*|,[0-9]+)$"
_LONGEST = (
    1000  # digits that are read as one number; nobody has a longer one, and the server could not cast all
)
_CAPABLE = "SELECT current_setting('server_version_num')::int8 >= 130000 AND pg_catalog.getdatabaseencoding() = 'UTF8'"

Ask = Callable[[str, Sequence[Any]], list[Sequence[Any]]]


@dataclass(frozen=True)
class Normal:
    """How a server writes the normal form: *capable* of NFKC, *fold* where case does not count, the *decimal* mark."""

    capable: bool
    fold: bool = True
    decimal: str = "."

    def python(self, texts: Sequence[str]) -> list[str]:
        """The same in velado itself, which the server's must agree with."""
        case = "same" if self.fold else "distinct"
        return normal_texts(pl.Series(texts, dtype=pl.String), case=case, decimal=self.decimal).to_list()

    def tidy(self, name: str) -> str:
        """An expression: the text of column *name* without unseen characters and without blanks around it."""
        # The server refuses regular expressions under a collation that calls different texts equal.
        text = f'({name}::text COLLATE "C")'
        if not self.capable:
            return f"btrim({text}, '{BLANKS}')"
        for _ in range(2):
            text = f"normalize(regexp_replace({text}, '{_UNSEEN}', '', 'g'), NFKC)"
        return (
            f"btrim(regexp_replace(regexp_replace({text}, '{_UNSEEN}', '', 'g'), '{_BLANK}', ' ', 'g'), ' ')"
        )

    def sql(self, name: str) -> str:
        """An expression: the normal form of the text of column *name*."""
        text = self.tidy(name)
        if self.fold:
            # ASCII first and without a locale: a Turkish one has another capital for the letter i.
            text = f'upper(lower(upper({text} COLLATE "C") COLLATE "default"))'
            text = f"normalize({text}, NFKC)" if self.capable else text
        if not self.capable:
            return text
        if self.decimal == ",":
            text = (
                f"(SELECT CASE WHEN t ~ '{THOUSANDS}' THEN replace(replace(t, '.', ''), ',', '.')"
                f" WHEN t ~ '{_COMMA}' THEN replace(t, ',', '.') ELSE t END FROM (SELECT {text} AS t OFFSET 0) AS c)"
            )
        return (
            f"(SELECT CASE WHEN t ~ '{_NUMBER}' AND length(t) <= {_LONGEST} THEN trim_scale(t::numeric)::text"
            f" ELSE t END FROM (SELECT {text} AS t OFFSET 0) AS n)"
        )


def is_capable(ask: Ask) -> bool:
    """Whether the server knows NFKC: version 13 or later, and a database in UTF-8."""
    return bool(ask(_CAPABLE, [])[0][0])


def refuse_split_units(
    ask: Ask, spelling: Normal, statement: str, parameters: list[Any], column: str
) -> None:
    """Nothing, or EngineError where units the server tells apart are one by velado's own normal form.

    *statement* has the column `unit`, the server's normal form of each row's unit. Only texts the server may have got
    wrong come here: those that are not plain ASCII, or all where it is not capable.
    """
    odd = "octet_length(unit) <> char_length(unit)" if spelling.capable else "unit IS NOT NULL"
    distinct = f"SELECT DISTINCT unit FROM ({statement}) AS units WHERE"
    found = [str(row[0]) for row in ask(f"{distinct} {odd}", parameters)]
    own = spelling.python(found)
    changed = [after for before, after in zip(found, own, strict=True) if before != after]
    split = len(set(own)) < len(found)
    if changed and not split:
        listed = f"unit = ANY(${len(parameters) + 1}::text[])"
        split = bool(ask(f"{distinct} {listed} LIMIT 1", [*parameters, changed]))
    if split:
        raise EngineError(
            say(
                "Values of '{column}' that are spelled differently mean one unit, and this server cannot "
                "tell that they do.",
                column=column,
            ),
            "One person would count as two, and move an answer further than the noise hides.",
            "Write each unit one way, use a UTF-8 database of PostgreSQL 13 or later, or query the table from a file.",
        )


# A PostgreSQL relation as the statement `kept`: checked once against the catalogue, then cells as the layout says.
#
# The server casts, cuts units to their most rows and aggregates; a row never leaves it.

_WHOLE = ("int2", "int4", "int8")
_FLOATS = ("float4", "float8")
_DAYS = ("date", "timestamp", "timestamptz")
_OTHERS = ("citext", "bool", "uuid", "numeric", *_WHOLE, *_DAYS)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The relation's quoted name and, for every declared column, the name of its type (`string` for all text-like)."""

    relation: str
    types: dict[str, str]
    layout: Layout
    schema: Schema
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
        parameters: list[Any] = [list(self.schema.missing_values)] if missing in inner else []
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
        parameters = [list(self.schema.missing_values), self._no_unit()] if "$2" in unit else []
        return f"SELECT {unit} AS unit FROM {self.relation}", parameters

    def _no_unit(self) -> list[str]:
        # The normal forms of the texts that mean "no value".
        assert self.unit.column is not None
        return sorted({*self.spelling.python([*self.schema.missing_texts(self.unit.column), ""])})

    def _listed(self, place: ColumnPlace, everywhere: str) -> str:
        """The texts that mean no value in a column, as SQL: the parameter of the whole table, or the column's own."""
        own = place.column.missing_values
        return everywhere if own is None else _array(own)

    def _unit(self, missing: str, none: str) -> str:
        assert self.unit.column is not None
        place, name = self.layout.places[self.unit.column], quoted(self.unit.column)
        if place.sort == "number":
            return self._cell(place, missing)
        missing = self._listed(place, missing)
        none = none if place.column.missing_values is None else _array(self._no_unit())
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

    def _cell(self, place: ColumnPlace, missing: str) -> str:
        if place.sort == "number":
            texts = self.schema.missing_texts(place.column.name)
            meant = missing_numbers(texts, self.schema.decimal)
            cell, none = self._stored(place), ", ".join(f"'{value!r}'::float8" for value in meant)
            return f"CASE WHEN {cell} IN ({none}) THEN NULL ELSE {cell} END" if none else cell
        text = cell = self._stored(place)
        if place.sort == "day":
            text = f'{cell}::text COLLATE "C"'
        return f"CASE WHEN {text} = ANY({self._listed(place, missing)}) THEN NULL ELSE {cell} END"

    def _stored(self, place: ColumnPlace) -> str:
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
        return f'{name}::text COLLATE "C"'


def _array(texts: Sequence[str]) -> str:
    """Texts as SQL, whatever the server makes of a backslash."""
    listed = [text.replace("\\", "\\\\").replace("'", "''") for text in texts]
    return "ARRAY[" + ", ".join(f"E'{text}'" for text in listed) + "]::text[]"


def find(ask: Ask, relation: str, schema: Schema, unit: Unit) -> Source:
    """The relation, from the catalogue alone: it exists, has the declared columns, and their types suit their kinds."""
    rows = ask(_RELATIONS, [relation])
    if not rows:
        raise SchemaError(
            say("There is no table or view '{relation}' in the database.", relation=relation),
            "Nothing can be asked of it.",
            "Write its name as it is stored, with its schema before a point if it is not on the search path.",
        )
    oid, space, name = rows[0]
    found = {str(column): (str(kind), str(own)) for column, kind, own in ask(_COLUMNS, [oid])}
    stored = {column: kind for column, (kind, _) in found.items()}
    absent = [column for column in schema.columns if column not in stored]
    if absent:
        raise SchemaError(
            say_n(
                "The schema names {n} column the relation does not have: {names}.",
                "The schema names {n} columns the relation does not have: {names}.",
                len(absent),
                names=_list(absent),
            ),
            "A question about a column that is not there has no answer.",
            "Correct the names in the schema.",
        )
    layout = Layout.of(schema, unit)
    unfit = [name for name, place in layout.places.items() if not _suits(place, stored[name])]
    if unfit:
        raise SchemaError(
            say_n(
                "{n} column of the relation does not have a type that suits its declared kind: {names}.",
                "{n} columns of the relation do not have a type that suits their declared kind: {names}.",
                len(unfit),
                names=_list(unfit),
            ),
            "Numbers need a numeric type, dates a date type, and everything else one that is read as text.",
            "Correct their kind in the schema, or query a view that casts them.",
        )
    types = {column: stored[column] for column in schema.columns}
    normal, collation = Normal(False), ""
    if unit.column is not None:
        # A type whose equality does not tell case has said so itself.
        fold = schema.columns[unit.column].case != "distinct" or types[unit.column] == "citext"
        normal, collation = Normal(is_capable(ask), fold, schema.decimal), found[unit.column][1]
    return Source(
        relation=f"{quoted(space)}.{quoted(name)}",
        types=types,
        layout=layout,
        schema=schema,
        unit=unit,
        spelling=normal,
        collation=collation,
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


def _suits(place: ColumnPlace, kind: str) -> bool:
    if place.sort == "number":
        return kind in (*_WHOLE, *_FLOATS, "numeric")
    if place.sort == "day":
        return kind in _DAYS
    return kind == "string" or kind in _OTHERS


def _list(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


T = TypeVar("T")
_IDLE = 4
_SETTINGS = ("SET search_path = pg_catalog", *SETTINGS)
_CONTENT = (
    "SELECT count(*)::text, sum(('x' || substr(h, 1, 16))::bit(64)::int8::numeric)::text,"
    " sum(('x' || substr(h, 17, 16))::bit(64)::int8::numeric)::text FROM (SELECT md5({row}) AS h FROM {relation}) AS hashed"
)


# Where the server's role may not ask for the identifier, the answer is NULL and no error.
_IDENTITY = """
SELECT CASE WHEN has_function_privilege('pg_catalog.pg_control_system()', 'execute')
    THEN (SELECT system_identifier::text FROM pg_catalog.pg_control_system()) END,
  (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database()), ($1::text)::regclass::oid::text
"""


def address_mark(url: str, relation: str) -> str:
    """A relation by host, port, base and name as they were written; who connects makes no difference, and no password stands there.

    >>> address_mark("postgresql://ana@db/clinic", "stays")
    'relation:db:5432/clinic#stays?'
    """
    parts = ServerAddress.of(url)
    host, colon, port = parts.hosts.lower().rpartition(":")
    if not colon or "]" in port:
        host, port = parts.hosts.lower(), ""
    return f"relation:{host.strip('[]')}:{port or 5432}{parts.path}#{relation}?{parts.open_words}"


class PostgresEngine:
    """Counts and sums over a relation that stays where it is. Safe among threads: each call has its own connection.

    Without a declared *version* the content is hashed once: the number of rows and the sums of both halves of their
    MD5, which no order changes. A table that changes afterwards keeps the version it was opened with; the owner who
    changes tables declares versions.
    """

    def __init__(
        self, url: str, relation: str, schema: Schema, unit: Unit, version: str | None = None
    ) -> None:
        self._url, self._asked = url, relation
        self.unit = unit
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._closed = False
        # The owner's search path finds the relation; afterwards it is named in full.
        self._source: Source = self._read(lambda ask: find(ask, relation, schema, unit), settings=False)
        if self._source.spelled:
            # Once, for the owner who opens the table: an error that came with an answer would tell of the rows.
            try:
                self._read(self._refuse_split_units)
            except BaseException:
                self.close()
                raise
        said = f"declared:{version}" if version is not None else self._read(self._content)
        self.version = fingerprint.of_text(f"{self._source.relation}\0{said}", schema, unit)

    @cached_property
    def identity(self) -> TableIdentity:
        """The relation by its server's own identifier, its base, and both its name and its number there.

        Neither the address nor its settings, nor how the relation was named, enters. A server that does not tell its
        identifier is known by its address, as far as that goes.
        """
        known = TableIdentity((address_mark(self._url, self._asked),))
        system, base, number = self._read(lambda ask: ask(_IDENTITY, [self._source.relation])[0])
        if system is None:
            return known
        return known.with_marks(
            (f"server:{system}/{base}#{self._source.relation}", f"server:{system}/{base}@{number}")
        )

    def __repr__(self) -> str:
        return f"PostgresEngine({len(self._source.types)} columns)"

    def tally(
        self, where: Predicate | None, keys: Sequence[AnyKey], needs: Needs, seconds: float | None = None
    ) -> Tallies:
        """One array per need, all from one snapshot; EngineError after *seconds*."""

        def work(ask: Ask) -> Tallies:
            def run(statement: Statement, sql: str) -> Iterable[Sequence[Any]]:
                kept, more = self._source.kept(statement.used, len(statement.parameters) + 1)
                return ask(kept + sql, [*statement.parameters, *more])

            def run_arrays(statement: Statement, sql: str) -> tuple[Counts, Counts, Counts]:
                rows = np.asarray(list(run(statement, sql)), dtype=np.int64).reshape(-1, 3)
                return rows[:, 0], rows[:, 1], rows[:, 2]

            return tally(self._source.layout, POSTGRES, where, keys, needs, run, run_arrays)

        return self._read(work, seconds)

    def close(self) -> None:
        """Give back the connections; a later tally is an EngineError."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _refuse_split_units(self, ask: Ask) -> None:
        refuse_split_units(ask, self._source.spelling, *self._source.units(), str(self.unit.column))

    def _content(self, ask: Ask) -> str:
        sql = _CONTENT.format(row=self._source.row_text(), relation=self._source.relation)
        return "hashed:" + ":".join(str(part) for part in ask(sql, [])[0])

    def _read(self, work: Callable[[Any], T], seconds: float | None = None, settings: bool = True) -> T:
        """What *work* returns, inside one read-only transaction. A connection the server has dropped is replaced once."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            connection, reused = self._connection(settings)
            try:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

                    def ask(sql: str, parameters: Sequence[Any], cursor: Any = cursor) -> list[Sequence[Any]]:
                        if deadline is not None:
                            left = max(1, int(1000 * (deadline - time.monotonic())))
                            cursor.execute(
                                "SELECT set_config('statement_timeout', $1::text, true)", [str(left)]
                            )
                        found: list[Sequence[Any]] = cursor.execute(sql, parameters).fetchall()
                        return found

                    result = work(ask)
            except psycopg.errors.QueryCanceled:
                self._give_back(connection, settings)
                raise too_slow(seconds) from None
            except psycopg.Error as error:
                gone = connection.closed or isinstance(error, psycopg.OperationalError)
                connection.close()
                if reused and gone:
                    continue
                # The server's message may quote a value, and the driver's the address.
                raise _failed() from None
            except BaseException:
                self._give_back(connection, settings)
                raise
            self._give_back(connection, settings)
            return result

    def _connection(self, settings: bool) -> tuple[Any, bool]:
        with self._lock:
            if self._closed:
                raise _failed()
            if settings and self._idle:
                return self._idle.pop(), True
        try:
            address: dict[str, Any] = {"connect_timeout": 10, **conninfo_to_dict(self._url)}
            connection = psycopg.connect(**address, autocommit=True, cursor_factory=psycopg.RawCursor)
            for setting in _SETTINGS if settings else ():
                connection.execute(setting)
        except (psycopg.Error, UnicodeError, ValueError):
            raise unreachable() from None
        return connection, False

    def _give_back(self, connection: Any, settings: bool) -> None:
        with self._lock:
            if settings and not self._closed and not connection.closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _failed() -> EngineError:
    return EngineError(
        "The PostgreSQL server did not compute the answer.",
        "The engine was closed, the server is gone, or it may not read the relation.",
        "Check the server and the rights of the role, then open the table again.",
    )
