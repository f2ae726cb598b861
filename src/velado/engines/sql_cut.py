"""SqlCut: the coded rows of a source as a table of its own where they lie, cut into parts by what histograms tell.

Every row is there with the codes of its quasi-identifiers, those of other columns that promises read, and the number of
its part. A round of cuts asks for the ends of every open part, for the histogram of the column that each is to be cut
along, and writes the rows once with their new parts: a number of questions that the number of parts does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from velado.data.partition import BoolArray, Int32Array, Int64Array
from velado.engines.row_source import ROWS, Coding, TupleKeys

_SMALL = 1 << 15


@dataclass(frozen=True, repr=False)
class PartCuts:
    """How parts are cut: part ``part[i]`` along ``column[i]``, into parts numbered from ``first[i]``; -1 leaves it whole.

    Codes up to ``last[i]`` go to the first of two; a part that is cut into more (``many[i]``) is listed in *branches*: the
    numbers of the part, the code and where it goes, counted from ``first[i]``.

    >>> one = np.zeros(1, np.int64)
    >>> PartCuts(one, one, one + 4, one, one > 0).told.column_names
    ['part', 'col', 'last_code', 'first_part', 'many']
    """

    part: Int64Array
    column: Int64Array
    last: Int64Array
    first: Int64Array
    many: BoolArray
    branches: tuple[Int64Array, Int64Array, Int64Array] | None = None

    @property
    def told(self) -> pa.Table:
        """What an engine is handed of the parts."""
        named = {"part": self.part, "col": self.column, "last_code": self.last, "first_part": self.first}
        return pa.table({**{n: a.astype(np.int32) for n, a in named.items()}, "many": self.many})

    @property
    def told_branches(self) -> pa.Table | None:
        """What an engine is handed of the codes of parts that are cut into more than two."""
        if self.branches is None:
            return None
        named = zip(("part", "code", "child"), self.branches, strict=True)
        return pa.table({name: array.astype(np.int32) for name, array in named})


class CutRows(Protocol):
    """Coded rows in parts, kept by the engine they came from.

    >>> from velado.engines.duckdb_source import of_arrow
    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> rows: CutRows = of_arrow(pa.table({"sex": ["F", "M", "M"]})).cut_rows(TupleKeys((sex,)), (), [-1])
    >>> rows.ends(np.zeros(1, np.int64))[1].tolist()
    [[1]]
    """

    def ends(self, parts: Int64Array) -> tuple[Int32Array, Int32Array]:
        """The least and the greatest code of every column in each of *parts* (rising): two arrays, parts x columns."""
        ...

    def histograms(self, parts: Int64Array, columns: Int64Array) -> tuple[Int64Array, Int32Array, Int64Array]:
        """For each of *parts* the counts of one of the *columns*: part, code and rows, in order of part and code."""
        ...

    def beside(self, number: int, cuts: PartCuts) -> tuple[Int64Array, Int32Array, Int64Array]:
        """The counts of another column's codes in each part that *cuts* would make: part, code and rows, in order."""
        ...

    def different(self, number: int, cuts: PartCuts) -> tuple[Int64Array, Int64Array]:
        """How many different codes of another column stand in each part that *cuts* would make: part and number."""
        ...

    def cut(self, cuts: PartCuts) -> None:
        """Every row is in the part that *cuts*, which name every part, send it to."""
        ...


class CutHere(CutRows, Protocol):
    """The same, with parts that come here to be cut to the end.

    >>> CutHere.__name__
    'CutHere'
    """

    def lay(self) -> None:
        """The rows of a part lie together: parts will be asked for one after the other."""
        ...

    def tuples(self, first: int, last: int) -> pa.Table:
        """The distinct tuples of parts *first*..*last* with the codes beside: `part`, keys, `v0`, ..., `rows`, in order."""
        ...

    def keep(self, keys: Sequence[Int64Array], cells: Int64Array, rows: Int64Array) -> None:
        """It is kept which cell each of these tuples is in, and its rows."""
        ...

    def keep_whole(self, part: int, cell: int) -> None:
        """It is kept that all tuples of a part are in one cell."""
        ...

    def sizes(self) -> tuple[Int64Array, Int64Array]:
        """How many rows a kept tuple has, and how many tuples have so many; the coded rows are given back."""
        ...


@runtime_checkable
class CutThere(CutRows, Protocol):
    """The same, with parts that are cut to the end where the rows lie; only cells come here.

    >>> CutThere.__name__
    'CutThere'
    """

    def finish(
        self, work: Callable[[pa.Table], pa.Table], lots: Sequence[tuple[int, int]], whole: Sequence[int]
    ) -> None:
        """*work* was done on the rows of each of the *lots* (first and last part); the parts *whole* are cells as they stand.

        It is given a table of rows (`part`, `c0`, ..., `v0`, ...) and gives back its distinct ones with `rows` and the number of
        the `cell` within the part.
        """
        ...

    def cells(self) -> pa.Table:
        """`part`, `cell`, `rows`, `low0`, ..., `high0`, ... of every cell, in order of part and cell."""
        ...

    def held(self, number: int) -> pa.Table:
        """`part`, `cell`, `code`, `rows` of another column's codes in every cell, in order."""
        ...

    def sizes(self) -> tuple[Int64Array, Int64Array]:
        """How many rows a tuple has, and how many tuples have so many; the coded rows are given back."""
        ...


def cut_columns(count: int, blanks: Sequence[int]) -> tuple[str, ...]:
    """The SQL of every column that may be cut: the codes, and after all of them whether a cell has a value, where some have none.

    >>> cut_columns(2, [-1, 3])
    ('c0', 'c1', 'CASE WHEN c1 = 3 THEN 1 ELSE 0 END')
    """
    flags = [f"CASE WHEN c{at} = {code} THEN 1 ELSE 0 END" for at, code in enumerate(blanks) if code >= 0]
    return (*(f"c{at}" for at in range(count)), *flags)


class CutTables(Protocol):
    """Tables that an engine keeps for a run alone, and how they are made and asked.

    >>> CutTables.__name__
    'CutTables'
    """

    def make(self, name: str, select: str) -> None:
        """A table *name* holds the rows of *select*, which may read the one that has the name now."""
        ...

    def drop(self, name: str) -> None:
        """There is no table *name* of the run; one of somebody else's stays."""
        ...

    def hold(self, name: str, table: pa.Table) -> None:
        """A table *name* holds what is handed over."""
        ...

    def ask(self, sql: str, names: Sequence[str]) -> pa.Table:
        """The answer, columns of whole numbers called *names*."""
        ...


class KeptTables(CutTables, Protocol):
    """The same, and what is handed over bit by bit.

    >>> KeptTables.__name__
    'KeptTables'
    """

    def append(self, name: str, table: pa.Table) -> None:
        """More rows of whole numbers stand in table *name*."""
        ...

    def append_select(self, name: str, select: str) -> None:
        """The rows of *select* stand in table *name* too."""
        ...

    def lay(self, name: str) -> None:
        """Rows of table *name* with the same `part` are quickly found."""
        ...


@dataclass(frozen=True, repr=False)
class SqlCut:
    """Coded rows in parts in a table `cut_rows` of an engine that speaks SQL; `cut_tuples` will hold the cell of each tuple.

    *columns* are the SQL of every column that may be cut; *prefix* begins the names of all tables.

    >>> from velado.engines.duckdb_source import of_arrow
    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> rows = of_arrow(pa.table({"sex": ["F", "M", "M"]})).cut_rows(TupleKeys((sex,)), (), [-1])
    >>> [found.tolist() for found in rows.histograms(np.zeros(1, np.int64), np.zeros(1, np.int64))]
    [[0, 0], [0, 1], [1, 2]]
    """

    tables: CutTables
    keys: TupleKeys
    columns: tuple[str, ...]
    more: int
    prefix: str = "cut_"

    def begin(self, rows: str, codes: Sequence[str], beside: Sequence[Coding]) -> None:
        """The rows of the SQL *rows* are there, in one part; *codes* are the SQL of the codes of the keys and then of *beside*."""
        names = self.stored
        made = [
            f"CAST({code} AS {'SMALLINT' if coding.size < _SMALL else 'INTEGER'}) AS {name}"
            for code, coding, name in zip(codes, [*self.keys.codings, *beside], names, strict=True)
        ]
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        self.tables.drop(self.rows)
        self.tables.drop(self.kept)
        self.tables.make(
            self.rows,
            f"SELECT {', '.join(names)}, CAST(0 AS INTEGER) AS part "
            f"FROM (SELECT {', '.join(made)} FROM {rows}) AS coded WHERE {there}",
        )

    @property
    def rows(self) -> str:
        """The name of the table of coded rows."""
        return f"{self.prefix}rows"

    @property
    def kept(self) -> str:
        """The name of the table of tuples whose cell is known."""
        return f"{self.prefix}tuples"

    def ends(self, parts: Int64Array) -> tuple[Int32Array, Int32Array]:
        """The least and the greatest code of every column in each of *parts* (rising): two arrays, parts x columns."""
        self.tables.hold(f"{self.prefix}open", pa.table({"part": parts.astype(np.int32)}))
        names = [f"{end}{at}" for end in ("low", "high") for at in range(len(self.columns))]
        asked = [f"{how}({sql})" for how in ("min", "max") for sql in self.columns]
        found = self.tables.ask(
            f"SELECT r.part, {', '.join(asked)} FROM {self.rows} AS r JOIN {self.prefix}open AS o ON o.part = r.part "
            "GROUP BY r.part ORDER BY r.part",
            ["part", *names],
        )
        ends = np.stack([found.column(name).to_numpy().astype(np.int32) for name in names], axis=1)
        return ends[:, : len(self.columns)], ends[:, len(self.columns) :]

    def histograms(self, parts: Int64Array, columns: Int64Array) -> tuple[Int64Array, Int32Array, Int64Array]:
        """For each of *parts* the counts of one of the *columns*: part, code and rows, in order of part and code."""
        told = pa.table({"part": parts.astype(np.int32), "col": columns.astype(np.int32)})
        self.tables.hold(f"{self.prefix}open", told)
        code = self._chosen(np.unique(columns))
        return self._counts(
            f"SELECT r.part AS part, {code} AS code FROM {self.rows} AS r JOIN {self.prefix}open AS q ON q.part = r.part"
        )

    def beside(self, number: int, cuts: PartCuts) -> tuple[Int64Array, Int32Array, Int64Array]:
        """The counts of another column's codes in each part that *cuts* would make: part, code and rows, in order."""
        value = f"v{number}"
        return self._counts(f"SELECT part, {value} AS code FROM ({self._moved(cuts, [value])}) AS moved")

    def different(self, number: int, cuts: PartCuts) -> tuple[Int64Array, Int64Array]:
        """How many different codes of another column stand in each part that *cuts* would make: part and number."""
        value = f"v{number}"
        found = self.tables.ask(
            f"SELECT part, count(*) FROM (SELECT part, {value} FROM ({self._moved(cuts, [value])}) AS moved "
            f"GROUP BY part, {value}) AS pairs GROUP BY part ORDER BY part",
            ["part", "codes"],
        )
        part, codes = (found.column(name).to_numpy() for name in found.column_names)
        return part.astype(np.int64), codes.astype(np.int64)

    def cut(self, cuts: PartCuts) -> None:
        """Every row is in the part that *cuts*, which name every part, send it to."""
        self.tables.make(self.rows, self._moved(cuts, self.stored))

    @property
    def stored(self) -> list[str]:
        """The columns of codes that a row has: those of the keys, and those beside."""
        return [f"c{at}" for at in range(len(self.keys.codings))] + [f"v{at}" for at in range(self.more)]

    def _chosen(self, columns: Int64Array) -> str:
        """The code that a row has in the column that its part, q, names."""
        cases = " ".join(f"WHEN {at} THEN {self.columns[at]}" for at in columns.tolist() if at >= 0)
        return f"CASE q.col {cases} END" if cases else "0"

    def _moved(self, cuts: PartCuts, wanted: Sequence[str]) -> str:
        """SQL of the rows of the parts that *cuts* name, with some columns and the part they would be in."""
        self.tables.hold(f"{self.prefix}parts", cuts.told)
        listed = ", ".join(wanted)
        code = self._chosen(np.unique(cuts.column))
        rows = (
            f"SELECT {', '.join(f'r.{name}' for name in wanted)}, q.part AS was, q.first_part, q.col, q.many, "
            f"q.last_code, {code} AS code FROM {self.rows} AS r JOIN {self.prefix}parts AS q ON q.part = r.part"
        )
        two = "CASE WHEN told.col >= 0 AND told.code > told.last_code THEN 1 ELSE 0 END"
        branches = cuts.told_branches
        if branches is None:
            return f"SELECT {listed}, first_part + {two} AS part FROM ({rows}) AS told"
        self.tables.hold(f"{self.prefix}branches", branches)
        return (
            f"SELECT {listed}, told.first_part + CASE WHEN told.many THEN b.child ELSE {two} END AS part "
            f"FROM ({rows}) AS told LEFT JOIN {self.prefix}branches AS b ON b.part = told.was AND b.code = told.code"
        )

    def _counts(self, rows: str) -> tuple[Int64Array, Int32Array, Int64Array]:
        found = self.tables.ask(
            f"SELECT part, code, count(*) AS {ROWS} FROM ({rows}) AS counted GROUP BY part, code "
            "ORDER BY part, code",
            ["part", "code", ROWS],
        )
        part, code, count = (found.column(name).to_numpy() for name in found.column_names)
        return part.astype(np.int64), code.astype(np.int32), count.astype(np.int64)


@dataclass(frozen=True, repr=False)
class SqlLots(SqlCut):
    """The same in a database whose parts come here, lot by lot, to be cut to the end.

    >>> from velado.engines.duckdb_source import of_arrow
    >>> sex = Coding("sex", pa.array(["F", "M"]), np.array([0, 1], np.int32), -1, 2)
    >>> rows = of_arrow(pa.table({"sex": ["F", "M", "M"]})).cut_rows(TupleKeys((sex,)), (), [-1])
    >>> rows.tuples(0, 0).to_pydict()
    {'part': [0, 0], 'key0': [0, 1], 'rows': [1, 2]}
    """

    tables: KeptTables

    def lay(self) -> None:
        """The rows of a part lie together: parts will be asked for one after the other."""
        self.tables.make(self.rows, f"SELECT {', '.join(self.stored)}, part FROM {self.rows} ORDER BY part")
        self.tables.lay(self.rows)

    def tuples(self, first: int, last: int) -> pa.Table:
        """The distinct tuples of parts *first*..*last* with the codes beside: `part`, keys, `v0`, ..., `rows`, in order."""
        keys = self._key_cells()
        beside = [f"v{at}" for at in range(self.more)]
        names = ["part", *self.keys.names, *beside]
        cells = ", ".join(
            ["part", *(f"{k} AS {n}" for k, n in zip(keys, self.keys.names, strict=True)), *beside]
        )
        listed = ", ".join(names)
        return self.tables.ask(
            f"SELECT {listed}, count(*) AS {ROWS} FROM (SELECT {cells} FROM {self.rows} "
            f"WHERE part BETWEEN {first} AND {last}) AS laid GROUP BY {listed} ORDER BY {listed}",
            [*names, ROWS],
        )

    def keep(self, keys: Sequence[Int64Array], cells: Int64Array, rows: Int64Array) -> None:
        """It is kept which cell each of these tuples is in, and its rows."""
        named = dict(zip(self.keys.names, keys, strict=True))
        kept = pa.table({**named, "cell": cells.astype(np.int32), ROWS: rows})
        self.tables.append(self.kept, kept)

    def keep_whole(self, part: int, cell: int) -> None:
        """It is kept that all tuples of a part are in one cell."""
        keys = self._key_cells()
        named = ", ".join(f"{key} AS {name}" for key, name in zip(keys, self.keys.names, strict=True))
        self.tables.append_select(
            self.kept,
            f"SELECT {named}, CAST({cell} AS INTEGER) AS cell, count(*) AS {ROWS} FROM {self.rows} "
            f"WHERE part = {part} GROUP BY {', '.join(keys)}",
        )

    def sizes(self) -> tuple[Int64Array, Int64Array]:
        """How many rows a kept tuple has, and how many tuples have so many; the coded rows are given back."""
        self.tables.drop(self.rows)
        found = self.tables.ask(
            f"SELECT {ROWS}, count(*) FROM {self.kept} GROUP BY {ROWS} ORDER BY {ROWS}", ["size", "tuples"]
        )
        return found.column("size").to_numpy(), found.column("tuples").to_numpy()

    def _key_cells(self) -> list[str]:
        return self.keys.expressions([f"c{at}" for at in range(len(self.keys.codings))])
